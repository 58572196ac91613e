"""The variants of a run: each agent and model with the skill and without it, or with an older version of it."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.errors import InputError, did_you_mean
from evalwright.files.key_paths import as_written
from evalwright.formats.skills.skill import Skill
from evalwright.model.plan import Variant
from evalwright.targets.coding_agent.programs import PROGRAMS
from evalwright.targets.coding_agent.target import CodingAgent

__all__ = ["OLD", "WITH", "WITHOUT", "baseline_variant_of", "deciding_variants", "skill_variants"]

WITH, WITHOUT, OLD = "with_skill", "without_skill", "old_skill"
_SKILLS = ".agents/skills"
"""Where programs without a place of their own look for skills, according to agentskills.io."""

_LONGEST = 60
"""The most characters of an agent's name: folders are named after it."""


def deciding_variants(variants: Sequence[Variant]) -> list[str]:
    """The variants that decide whether a run passes: those with the skill; if there are none, all."""
    with_skills = [
        variant.name for variant in variants if variant.config.get("skills") and not variant.name.endswith(OLD)
    ]
    return with_skills or [variant.name for variant in variants if not variant.name.endswith((OLD, WITHOUT))]


def baseline_variant_of(variants: Sequence[Variant]) -> str | None:
    """The variant that others are compared with, if there is exactly one."""
    names = [variant.name for variant in variants if not variant.name.endswith(WITH)]
    return names[0] if len(names) == 1 and len(variants) == 2 else None


class _Configured(NamedTuple):
    name: str
    """The names of agent and model, if there are several; else empty."""
    config: dict[str, Any]


def skill_variants(skill: Skill, options: Mapping[str, Any]) -> list[Variant]:
    """All variants in the order of the options. Raises InputError."""
    kinds = _kinds(options)
    seconds = options.get("agent_seconds") or CodingAgent.default_timeout({})
    variants = []
    for agent in _configured_agents(options):
        for kind in kinds:
            skills = {WITH: {skill.name: str(skill.root)}, OLD: _old(skill, options)}.get(kind)
            config = {**agent.config, **({"skills": skills} if skills else {})}
            name = f"{agent.name}/{kind}" if agent.name else kind
            variants.append(Variant(name, "coding_agent", config, timeout_seconds=seconds))
    return variants


def _kinds(options: Mapping[str, Any]) -> list[str]:
    known = [WITH, OLD if options.get("baseline") else WITHOUT]
    variants = options.get("variants")
    if variants is None:
        return known
    chosen = [name.strip() for name in variants.split(",") if name.strip()]
    for name in chosen:
        if name not in known:
            raise InputError(
                f"--variants: expected {' or '.join(known)}, found {as_written(name)}{did_you_mean(name, known)}"
            )
    if not chosen:
        raise InputError(f"--variants: expected {', '.join(known)} or one of them")
    return list(dict.fromkeys(chosen))


def _old(skill: Skill, options: Mapping[str, Any]) -> dict[str, str] | None:
    folder = options.get("baseline")
    if folder is None:
        return None
    if not os.path.isfile(Path(folder) / "SKILL.md"):
        raise InputError(f"--baseline: expected a folder with a version of the skill, there is no SKILL.md in {folder}")
    return {skill.name: str(Path(folder).resolve())}


def _configured_agents(options: Mapping[str, Any]) -> list[_Configured]:
    """Each agent with each model."""
    agents: Sequence[str] = options.get("agent") or ("claude",)
    models: Sequence[str | None] = options.get("model") or (None,)
    command = options.get("agent_command")
    if command is not None and len(agents) > 1:
        raise InputError("--agent-command: expected one --agent beside it, found several")
    names, configs = [], []
    for agent, name in _agent_names(dict.fromkeys(agents)).items():
        for model in dict.fromkeys(models):
            parts = [name] * (len(agents) > 1) + [str(model).replace("/", "-")] * (len(models) > 1)
            names.append("-".join(parts))
            configs.append(
                {
                    **_agent_config(agent, command, options),
                    **({"model": model} if model else {}),
                    **_shared_config(options),
                }
            )
    return list(map(_Configured, _numbered_names(names), configs))


def _agent_names(agents: Iterable[str]) -> dict[str, str]:
    """Each agent's program; if two share one, with its arguments, and then with the folders of both."""
    words = {agent: [agent] if agent in PROGRAMS else _split("--agent", agent) for agent in agents}
    short = {agent: Path(own[0]).name for agent, own in words.items()}
    files = {agent: _plain_words(Path(word).name for word in own) for agent, own in words.items()}
    whole = {agent: _plain_words(own) for agent, own in words.items()}
    apart = (names for names in (short, files, whole) if len({*names.values()}) == len(names))
    return next(apart, short)


def _plain_words(words: Iterable[str]) -> str:
    return re.sub(r"[^\w.]+", "-", " ".join(words)).strip("-")[:_LONGEST]


def _numbered_names(names: Iterable[str]) -> list[str]:
    """The same names, numbered when repeated; files named after them must differ by more than case."""
    found: dict[str, str] = {}
    for name in names:
        free, number = name, 1
        while free.casefold() in found:
            number += 1
            free = f"{name}-{number}"
        found[free.casefold()] = free
    return list(found.values())


def _split(option: str, command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(f"{option}: {command!r} is not a command line: {error}") from None
    if not words:
        raise InputError(f"{option}: expected a command line, found nothing")
    return words


def _agent_config(agent: str, command: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
    if agent in PROGRAMS and agent != "command":
        return {"agent": agent, **({"command": _split("--agent-command", command)} if command else {})}
    line = command if agent == "command" else agent
    if line is None:
        raise InputError("--agent command needs --agent-command with the command line")
    if len(agent.split()) == 1 and (near := did_you_mean(agent, PROGRAMS)) and "/" not in agent and line == agent:
        raise InputError(f"--agent: unknown agent {agent!r}{near} (a command is written with its path)")
    output = options.get("agent_output")
    place = options.get("skill_folder") or _SKILLS
    settings = {"agent": "command", "command": _split("--agent", line), "skill_folder": place}
    return {**settings, **({"output": output} if output else {})}


def _shared_config(options: Mapping[str, Any]) -> dict[str, Any]:
    names = {
        "prompt_prefix": "prompt_prefix",
        "max_turns": "max_turns",
        "max_budget": "max_budget_usd",
        "allow_tools": "allow_tools",
        "sandbox": "sandbox",
        "image": "image",
    }
    return {key: options[name] for name, key in names.items() if options.get(name) not in (None, False)}
