"""`regex` of AgentV is one of JavaScript: what AgentV 4.42.4 and Node said of each expression."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evalwright.formats.loading import load_suite
from evalwright.model.result import CaseVerdict
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run

ANSWER = "Hello World 42\n"
SAID = f"def said(asked):\n    return {{'text': {ANSWER!r}}}\n"
FOUND = (
    (r"\d+\s$", ""), (r"42", ""), (r"(?<n>World)", ""), ("[^]$", ""), (r"\cJ", ""), ("(?<=Hello|H)x?", ""),
    (r"\e", ""), ("^hello", "i"), (r"\d+$", "m"), ("42.$", "s"), (r"^h.*\d\n$", "gi"), (r"\p{Lu}ello", "u"),
    ("Hello", "y"),
)  # fmt: skip
NOT_FOUND = (
    (r"\d+$", ""), ("42$", ""), ("^Hello.*42$", ""), (r"^\w+ \w+ \d+$", ""), (r"\Z", ""), (r"\A.*", ""),
    ("^hello", ""), (r"\p{Lu}", ""), ("World", "y"),
)  # fmt: skip
INVALID = (
    ("(?i)hello", ""), ("(?P<n>W)", ""), ("H++", ""), ("W(?#c)orld", ""), ("(?s).+42.$", ""), ("[", ""),
    ("Hello", "zz"), ("Hello", "x i"), ("Hello", "ii"),
)  # fmt: skip


def statuses(folder: Path, *checks: dict[str, Any]) -> list[str]:
    (folder / "saying.py").write_text(SAID)
    target = {"name": "default", "provider": "python", "callable": "saying:said"}
    (folder / "targets.yaml").write_text(json.dumps({"targets": [target]}))
    tests = [{"id": f"{i:03}", "input": "hi", "assertions": [check]} for i, check in enumerate(checks)]
    (folder / "a.eval.yaml").write_text(json.dumps({"name": "suite", "tests": tests}))
    reader, _ = open_run(run_suite(load_suite(folder / "a.eval.yaml"), RunOptions(out=folder / "runs")).run_dir)
    return [verdict.status for verdict in sorted(reader.verdicts(CaseVerdict), key=lambda verdict: verdict.case_id)]


def test_what_is_found_is_what_the_original_finds(tmp_path: Path) -> None:
    expected = {**dict.fromkeys(FOUND, "pass"), **dict.fromkeys(NOT_FOUND, "fail"), **dict.fromkeys(INVALID, "error")}
    checks = [{"type": "regex", "value": value, "flags": flags} for value, flags in expected]
    assert dict(zip(expected, statuses(tmp_path, *checks), strict=True)) == expected


def test_a_pattern_that_must_not_be_found_is_no_pass_where_it_is_invalid(tmp_path: Path) -> None:
    checks = [{"type": "not-regex", "value": value} for value in (r"\d+$", r"\d", "(?i)hello")]
    assert statuses(tmp_path, *checks) == ["pass", "fail", "error"]
    assert statuses(tmp_path, {"type": "regex", "value": "World", "negate": True}) == ["fail"]


def test_what_only_node_knows_to_be_invalid_is_an_error(tmp_path: Path) -> None:
    assert statuses(tmp_path, {"type": "not-regex", "value": "(?<n>a)(?<n>b)"}) == ["error"]
