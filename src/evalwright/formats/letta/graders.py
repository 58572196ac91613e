"""The graders of a Letta suite as evaluators behind extractors."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from evalwright.errors import did_you_mean
from evalwright.evaluators.build import fields_by_key
from evalwright.evaluators.judges.rubric_template import names_in_template
from evalwright.files.boundary import OutsideError
from evalwright.files.key_paths import Place, as_written
from evalwright.files.numbers import finite_number_in
from evalwright.formats.letta.retries import checked_retries
from evalwright.formats.letta.samples import RESERVED
from evalwright.formats.shared.gates import pass_thresholds
from evalwright.formats.shared.named_files import NamedFiles
from evalwright.model.plan import EvaluatorSpec, Plugin
from evalwright.registry import PREMADE, load, names

__all__ = ["JUDGES", "NEED_TRUTH", "OF_JUDGE", "OF_TOOL", "PROVIDERS", "TOOL_GRADERS", "Graders"]

TOOL_GRADERS = {
    "ascii_printable_only": "ascii_printable_only",
    "contains": "ground_truth_contained",
    "exact_match": "ground_truth_equals",
    "regex_match": "ground_truth_matches",
}
"""Letta's own names to ours."""
NEED_TRUTH = {*TOOL_GRADERS.values()} - {"ascii_printable_only"}
"""The types of evaluators that compare the submission with the ground truth."""
JUDGES = ("model_judge", "rubric", "letta_judge")
_KINDS = ("tool", *JUDGES)
PROVIDERS = ("openai", "anthropic", "google")
_COMMON = {"kind", "display_name", "extractor", "extractor_config"}
OF_TOOL = _COMMON | {"function"}
OF_JUDGE = _COMMON | {
    "prompt", "prompt_path", "model", "temperature", "provider", "max_retries", "timeout", "rubric_vars",
    "system_prompt", "reply_retries",
    "agent_file", "agent_id", "judge_tool_name",
}  # fmt: skip
_TOOL_NAME = "submit_grade"


class Graders:
    """Reads `graders`; every mistake is reported with its place."""

    def __init__(
        self,
        files: NamedFiles,
        newer: bool,
        options: Mapping[str, Any],
        report: Callable[[Place, str], None],
        note: Callable[[Place, str], None],
        warn: Callable[[Place, str], None],
    ) -> None:
        self._files, self._newer, self._options, self._report, self._note = files, newer, options, report, note
        self._warn = warn
        self._graders: Mapping[str, Any] = {}

    def specs(self, graders: Mapping[str, Any], gate: Mapping[str, Any] | None) -> list[EvaluatorSpec]:
        specs = []
        self._graders = graders
        for key, raw in graders.items():
            place: Place = ("graders", key)
            if not isinstance(raw, Mapping):
                self._report(place, f"expected a mapping, found {as_written(raw)}")
                continue
            kind, config = self._kind(raw, place)
            extractor = self._extractor(raw, place)
            if kind is not None and extractor is not None:
                threshold, compare = _passes(gate, key)
                specs.append(
                    EvaluatorSpec(key, kind, config, threshold=threshold, threshold_op=compare, extractor=extractor)
                )
        return specs

    def _kind(self, raw: Mapping[str, Any], place: Place) -> tuple[str | None, dict[str, Any]]:
        kind = raw.get("kind")
        if kind == "tool":
            self._report_unknown(raw, OF_TOOL, place)
            return self._tool(raw.get("function"), (*place, "function"))
        if kind in JUDGES:
            self._report_unknown(raw, OF_JUDGE, place)
            return self._judge(raw, place)
        found = f"unknown kind {kind!r}{did_you_mean(str(kind), _KINDS)}" if "kind" in raw else "the key is missing"
        self._report((*place, "kind"), f"{found} (there are: {', '.join(_KINDS)})")
        return None, {}

    def _report_unknown(self, raw: Mapping[str, Any], known: set[str], place: Place) -> None:
        for key in raw:
            if key not in known:
                self._note((*place, key), f"nothing reads this key{did_you_mean(str(key), known)}")

    def _tool(self, function: Any, place: Place) -> tuple[str | None, dict[str, Any]]:
        if not isinstance(function, str) or not function:
            self._report(place, "function: expected the name of a function, or file.py:name")
        elif ":" in function:
            return "python_grader", self._own(self._files.function(function, place))
        elif function in TOOL_GRADERS:
            return TOOL_GRADERS[function], {}
        elif function in PREMADE:
            return function, {}
        elif function in (own := _registered(self._graders, self._files, "grader")):
            return "python_grader", self._own(own[function])
        else:
            functions = (*TOOL_GRADERS, *own, *PREMADE)
            known = f"{did_you_mean(function, functions)} (there are: {', '.join(functions)})"
            self._report(place, f"no function {function!r}{known}")
        return None, {}

    def _own(self, function: str) -> dict[str, Any]:
        # in suites with a gate, such a grade counts by its score, as in letta-evals 0.9
        return {"function": function, **({"reported_errors": True} if self._newer else {})}

    def _judge(self, raw: Mapping[str, Any], place: Place) -> tuple[str | None, dict[str, Any]]:
        prompt = self._prompt(raw, place)
        named = raw.get("judge_tool_name", _TOOL_NAME)
        if named != _TOOL_NAME and not (raw.get("agent_file") or raw.get("agent_id")):
            self._report((*place, "judge_tool_name"), "judge_tool_name: needs agent_file or agent_id as well")
        provider = raw.get("provider", "openai")
        if provider not in PROVIDERS:
            self._report(
                (*place, "provider"), f"provider: expected one of {', '.join(PROVIDERS)}, found {as_written(provider)}"
            )
        declared = [] if raw.get("rubric_vars") is None else raw["rubric_vars"]
        if not isinstance(declared, list) or not all(isinstance(name, str) for name in declared):
            self._report(
                (*place, "rubric_vars"), f"rubric_vars: expected a list of names, found {as_written(declared)}"
            )
            declared = []
        settings = {
            name: raw[name]
            for name in ("model", "temperature", "timeout", "system_prompt", "reply_retries")
            if raw.get(name) is not None
        }
        numbers = {name: finite_number_in(settings[name]) for name in ("temperature", "timeout") if name in settings}
        settings |= {name: number for name, number in numbers.items() if number is not None}
        config = {
            "prompt": prompt or "",
            "provider": provider,
            "rubric_vars": declared,
            "max_attempts": 1 + checked_retries(raw.get("max_retries", 5), (*place, "max_retries"), self._report),
            **settings,
        }
        config |= {"braces": "doubled", "wrapper": "letta_0_17"} if self._newer else {"wrapper": "letta_0_9"}
        if self._newer or self._options.get("strict_rubric"):
            config["unknown_names"] = "refuse"  # since 0.17, such a sample is an error
        self._look_at_names(config["prompt"], (*place, "prompt"))
        return "rubric_template", config

    def _look_at_names(self, prompt: str, place: Place) -> None:
        """Report names that suites of this version do not put into their prompts."""
        try:
            names = names_in_template(prompt, doubled=self._newer)
        except ValueError as error:
            self._report(place, f"the prompt cannot be filled in: {error}; {{{{ is a brace")
            return
        if not self._newer and (literal := sorted(names & {*RESERVED})):
            braced = ", ".join(f"{{{name}}}" for name in literal)
            self._warn(
                place,
                f"{braced}: in a suite with a gate such names stay as they are, as in letta-evals 0.9, which shows the "
                "question, the ground truth and the submission below the prompt",
            )

    def _prompt(self, raw: Mapping[str, Any], place: Place) -> str | None:
        text, named = raw.get("prompt"), raw.get("prompt_path")
        if bool(text) == bool(named):
            found = "both" if text else "neither"
            self._report((*place, "prompt"), f"expected one of 'prompt' and 'prompt_path', found {found}")
        elif named:
            return self._files.text(str(named), (*place, "prompt_path"))
        elif isinstance(text, str):
            return text
        else:
            self._report((*place, "prompt"), f"prompt: expected text, found {as_written(text)}")
        return None

    def _extractor(self, raw: Mapping[str, Any], place: Place) -> Plugin | None:
        name = raw.get("extractor", "last_assistant")
        config = {} if raw.get("extractor_config") is None else raw["extractor_config"]
        if not isinstance(config, dict):
            self._report((*place, "extractor_config"), f"expected a mapping, found {as_written(config)}")
            return None
        if isinstance(name, str) and ":" in name:
            function = self._files.function(name, (*place, "extractor"))
            return Plugin("python_extractor", {"function": function, "config": config})
        known = [known for known in names("extractors") if known != "python_extractor"]
        if name not in known:
            own = _registered(self._graders, self._files, "extractor")
            if isinstance(name, str) and name in own:
                return Plugin("python_extractor", {"function": own[name], "config": config})
            known += own
            self._report(
                (*place, "extractor"),
                f"no extractor {name!r}{did_you_mean(str(name), known)} (there are: {', '.join(known)})",
            )
            return None
        kind = load("extractors", str(name))
        # an evaluator of a plug-in, which checks its keys itself
        if not (isinstance(kind, type) and issubclass(kind, Struct)):
            return Plugin(str(name), config)
        read = fields_by_key(kind)
        for key in config:
            if key not in read:
                message = f"the extractor {name!r} does not read {key!r}{did_you_mean(str(key), read)}"
                self._note((*place, "extractor_config", key), message)
        return Plugin(str(name), {key: value for key, value in config.items() if key in read})


def _passes(gate: Mapping[str, Any] | None, key: str) -> tuple[float, str]:
    """The score from which a result of a grader passes, and the comparison: the gate's, else at least 1."""
    if gate is None or gate["kind"] == "reward":
        return 1.0, "gte"
    if gate["kind"] == "legacy":
        return gate["pass_value"], gate["pass_op"]
    return pass_thresholds(gate).get(key, 1.0), "gte"


def _registered(graders: Mapping[str, Any], files: NamedFiles, role: str) -> dict[str, str]:
    """`file.py:function` for each function with the decorator `role` in the files that graders name, by the name that
    the decorator gives it, else its own.

    The files are read, not executed: a suite is also checked without running its code.
    """
    named = dict.fromkeys(_files_of(graders))
    return {name: place for path in named for name, place in _in(path, files, role)}


def _files_of(graders: Mapping[str, Any]) -> Iterator[str]:
    for raw in graders.values():
        for key in ("function", "extractor") if isinstance(raw, Mapping) else ():
            path, colon, _ = str(raw.get(key)).rpartition(":")
            if colon:
                yield path


def _in(path: str, files: NamedFiles, role: str) -> Iterator[tuple[str, str]]:
    """Names, each with the place of its function."""
    try:
        file = files.boundary.check(files.folder / path)
        tree = ast.parse(files.boundary.read(file))
    except (OutsideError, OSError, SyntaxError, ValueError):  # reported where a grader names the file
        return
    for part in tree.body:
        if not isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for mark in part.decorator_list:
            call = mark if isinstance(mark, ast.Call) else None
            if ast.unparse(mark if call is None else call.func).rpartition(".")[2] == role:
                names = (
                    [keyword.value for keyword in call.keywords if keyword.arg == "name"] if call is not None else []
                )
                name = names[0].value if names and isinstance(names[0], ast.Constant) else None
                yield str(name or part.name), f"{file}:{part.name}"
