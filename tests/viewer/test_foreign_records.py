"""Records that another program wrote, or that were changed, are shown as far as they fit, and end nothing."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from evalwright.cli import main
from evalwright.model.cell import cell_key
from viewer.reading import cases, found, page
from viewer.runs import site

COMMANDS = (
    ("report", "RUN", "--format", "html"),
    ("inspect", "RUN", "--no-truncate"),
    ("view", "RUN", "--bundle", "pages"),
)


def changed(run: Path, folder: Path, file: str, place: tuple[Any, ...], value: Any) -> Path:
    """A copy of the run with another value in the first record that has the place."""
    copy = folder / run.name
    shutil.copytree(run, copy)
    records = [json.loads(line) for line in (copy / file).read_text("utf-8").splitlines()]
    for record in records:
        inner = record
        try:
            for step in place[:-1]:
                inner = inner[step]
            inner[place[-1]]
        except (KeyError, IndexError, TypeError):
            continue
        inner[place[-1]] = value
        break
    else:
        raise AssertionError(f"no record has {place}")
    (copy / file).write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return copy


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize(
    ("file", "place", "value", "told"),
    [
        ("results.jsonl", ("detail",), "text", "results.jsonl"),
        ("results.jsonl", ("score",), "half", "results.jsonl"),
        ("results.jsonl", ("error",), [None], "results.jsonl"),
        ("results.jsonl", ("hits",), 5, "results.jsonl"),
        ("results.jsonl", ("detail", "judge_calls"), "one", ""),
        ("results.jsonl", ("detail", "judge_calls", 0), "one", ""),
        ("results.jsonl", ("detail", "judge_calls", 0, "messages", 0), 5, ""),
        ("results.jsonl", ("detail", "judge_calls", 0, "usage"), "much", ""),
        ("traces.jsonl", ("case_index",), 1, ""),
        ("traces.jsonl", ("spans", 0, "attributes"), {"input_tokens": 5, "output_tokens": "many"}, ""),
    ],
)
def test_what_does_not_fit_is_left_out_or_told(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    command: tuple[str, ...], file: str, place: tuple[Any, ...], value: Any, told: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    damaged = changed(run, tmp_path, file, place, value)
    with pytest.raises(SystemExit) as ended:
        main([word.replace("RUN", str(damaged)) for word in command])
    out, err = capsys.readouterr()
    assert (ended.value.code or 0) in ((2, 3) if told else (0, 3)), err[-500:]
    assert told in err
    assert out


@pytest.mark.parametrize("command", COMMANDS[::2], ids=lambda words: words[0])
def test_a_number_beyond_64_bits_is_told(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    command: tuple[str, ...],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    damaged = changed(run, tmp_path, "verdicts.jsonl", ("trial",), 2**70)
    with pytest.raises(SystemExit) as ended:
        main([word.replace("RUN", str(damaged)) for word in command])
    assert (ended.value.code, "out of range" in capsys.readouterr().err) == (2, True)


@pytest.mark.parametrize(
    ("file", "place", "value", "word"),
    [("traces.jsonl", ("variant_name",), [], "needle"), ("results.jsonl", ("trial",), 2**70, "polite")],
)
def test_a_search_goes_on_behind_what_is_no_record(
    run: Path, tmp_path: Path, file: str, place: tuple[Any, ...], value: Any, word: str
) -> None:
    damaged = changed(run, tmp_path, file, place, value)
    with site(damaged.parent) as client:
        text = page(client, f"/runs/{run.name}?q={word}&in=messages")
    assert "case-5" in cases(text)


def test_a_cell_without_a_trace_is_compared_and_only_skipped(run: Path, tmp_path: Path) -> None:
    damaged = changed(run, tmp_path, "traces.jsonl", ("variant_name",), [])
    unread = cell_key("case-0", "agent", 0)
    shutil.copytree(run, tmp_path / "whole")
    with site(damaged.parent) as client:
        text = page(client, f"/compare/cells/{unread}?a=whole&b={run.name}")
        assert "The order" in text
        first = page(client, f"/runs/{run.name}/label?evaluator=says&order=suite")
    assert "cannot be read" in first
    assert re.findall(r'value="(\w+)"[^>]* disabled', first) == ["pass", "fail", "unsure", "undo"]


def test_a_count_beyond_floats_ends_no_page(run: Path, tmp_path: Path) -> None:
    damaged = changed(run, tmp_path, "traces.jsonl", ("metrics", "token_input"), 10**400)
    (damaged / "summary.yaml").unlink()
    with site(damaged.parent) as client:
        page(client, "/")
        page(client, f"/runs/{run.name}")


def test_each_of_thousands_of_trials_is_a_cell(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / run.name)
    for name in ("traces", "results", "verdicts"):
        records = [json.loads(line) for line in (copy / f"{name}.jsonl").read_text("utf-8").splitlines()]
        lines = [json.dumps({**record, "trial": record.get("trial", 0) + 5000}) for record in records]
        (copy / f"{name}.jsonl").write_text("\n".join([*lines, ""]), "utf-8")
    with site(copy.parent) as client:
        assert found(page(client, f"/runs/{run.name}")) == "14 of 14 cells"
