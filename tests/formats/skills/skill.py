"""A skill with evals, an agent that stands in for a real one, and a judge that looks for words."""

import json
import shlex
from pathlib import Path

from evalwright.formats.loading import load_suite
from evalwright.llm.choices import ModelChoices
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from targets.agents import RESULT, lines

JUDGE = "python:formats.skills.skill:reply"
ASKED: list[str] = []
EVALS = [
    {
        "id": 1,
        "prompt": "Why does the build fail?",
        "expected_output": "It names the line.",
        "files": ["evals/files/in.csv"],
        "assertions": ["semicolon", {"name": "Line", "check": "names line 7"}],
    },
    {"id": "two", "name": "windows", "prompt": "And on Windows?", "expected_output": "semicolon"},
]


def reply(request):
    """A criterion holds if its first word is in the agent's answer."""
    text = request.messages[-1].content
    ASKED.append(text)
    criterion = text.partition("\n\nCriterion: ")[2].partition("\n\n")[0]
    answer = text.partition("final answer:\n")[2].partition("the files that the agent")[0]
    word = criterion.split()[0].rstrip(":")
    return json.dumps({"evidence": f"“{word}”" if word in answer else "not there", "passed": word in answer})


def skill_in(folder, evals=EVALS, **top):
    root = folder / "gsm8k-cot"
    for name, text in {
        "SKILL.md": "---\nname: gsm8k-cot\ndescription: d\n---\nDo it.\n",
        "scripts/x.py": "pass\n",
        "evals/files/in.csv": "a,b\n",
        "evals/files/other.csv": "x\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    document = {"skill_name": "gsm8k-cot", "evals": evals, **top}
    (root / "evals/evals.json").write_text(json.dumps(document, ensure_ascii=False))
    return root / "evals/evals.json"


def said(text, *calls):
    """What Claude Code would print."""
    blocks = [
        {"type": "tool_use", "id": f"t{i}", "name": name, "input": given} for i, (name, given) in enumerate(calls)
    ]
    message = {"id": "m", "role": "assistant", "content": [*blocks, {"type": "text", "text": text}]}
    line = {"type": "assistant", "session_id": "s", "message": message}
    return lines(line, {**RESULT, "result": text})


def agent(folder: Path, with_skill: bytes, without: bytes) -> str:
    """A command that prints the one or the other, and leaves a file."""
    (folder / "with").write_bytes(with_skill)
    (folder / "without").write_bytes(without)
    find = f"find . -type f | sort >> {folder}/seen; echo -- >> {folder}/seen"
    choose = f"if [ -d .claude/skills ]; then cat {folder}/with; else cat {folder}/without; fi"
    script = f"cat > prompt.txt; {find}; echo made > made.txt; rm prompt.txt; {choose}"
    return shlex.join(["/bin/sh", "-c", script])


def ran(path, command, *, options=None, **choices):
    settings = {"agent": ("claude",), "agent_command": command, "allow_tools": True, "judge_model": JUDGE}
    suite = load_suite(path, options={**settings, **(options or {})})
    out = path.parents[1].parent / "runs"
    return run_suite(suite, RunOptions(out=out, models=ModelChoices(no_cache=True), **{"concurrency": 1, **choices}))


def records(outcome, name):
    return [json.loads(line) for line in (outcome.run_dir / name).read_text().splitlines()]
