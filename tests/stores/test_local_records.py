"""Records in run folders: what comes back, and how all judgements are replaced at once."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from evalwright.errors import InputError, StorageError
from evalwright.files.masker import MASKED, Masker
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.trace import Output, Trace
from evalwright.stores.local_files import LocalFiles
from evalwright.testing import a_case, a_plan, a_result, a_trace, a_verdict
from stores.local_runs import created, rewritten

# records


def test_lines_are_split_nowhere_but_at_their_ends(tmp_path: Path) -> None:
    text = "a\u2028b\u2029c\x85d\x0ce\r\nf\0g"
    writer = created(tmp_path)
    writer.append_trace(a_trace(output=Output(text)))
    writer.append_results([a_result(reason=text)] * 2)
    writer.append_verdict(a_verdict(reasons=[text]))
    for name, count in (("traces", 1), ("results", 2), ("verdicts", 1)):
        assert len((writer.folder / f"{name}.jsonl").read_text().splitlines()) == count
    assert [t.output.final_answer for t in writer.traces(Trace)] == [text]
    assert [r.reason for r in writer.results(EvaluationResult)] == [text, text]
    assert [v.reasons for v in writer.verdicts(CaseVerdict)] == [[text]]
    writer.close()


@pytest.mark.parametrize("value", ["x" * 1_000_000, "é" * 500_000, 10**40, [[[[["deep"]]]]], "\0" * 1000])
def test_large_and_odd_values_come_back(tmp_path: Path, value: object) -> None:
    writer = created(tmp_path)
    writer.append_trace(a_trace(input=value))
    writer.append_trace(a_trace())
    assert [t.input for t in writer.traces(Trace)] == [value, {"user_message": "Hello"}]
    writer.close()


def _endless() -> list[object]:
    value: list[object] = []
    value.append(value)
    return value


@pytest.mark.parametrize("value", ["\ud800", object(), {(1, 2): 3}, _endless()])
def test_what_json_cannot_hold_is_refused_without_half_a_line(tmp_path: Path, value: object) -> None:
    writer = created(tmp_path)
    writer.append_trace(a_trace(case_id="before"))
    with pytest.raises((TypeError, ValueError)):
        writer.append_trace(a_trace(input=value))
    with pytest.raises((TypeError, ValueError)):
        writer.append_results([a_result(), a_result(detail={"x": value})])
    writer.append_trace(a_trace(case_id="after"))
    assert [t.case_id for t in writer.traces(Trace)] == ["before", "after"]
    assert list(writer.results(EvaluationResult)) == []
    writer.close()


@pytest.mark.parametrize("ends", ["later", "hold", "close"])
def test_what_is_held_is_written_in_its_order_when_it_is_time(tmp_path: Path, ends: str) -> None:
    writer = created(tmp_path)
    due: list[Callable[[], None]] = []
    writer.hold(due.append)
    for number in range(3):
        writer.append_trace(a_trace(case_id=f"c{number}"))
        writer.append_verdict(a_verdict(case_id=f"c{number}"))
    assert (len(due), [*writer.traces(Trace)], [*writer.verdicts(CaseVerdict)]) == (1, [], [])
    if ends == "later":
        due[0]()
        writer.append_trace(a_trace(case_id="c3"))
        assert (len(due), len([*writer.traces(Trace)])) == (2, 3)
    elif ends == "hold":
        writer.hold(None)
        writer.append_trace(a_trace(case_id="c3"))
        assert len([*writer.traces(Trace)]) == 4
    writer.close()
    with closing(LocalFiles(tmp_path).read(writer.folder.name)) as reader:
        assert [trace.case_id for trace in reader.traces(Trace)][:3] == ["c0", "c1", "c2"]
        assert [verdict.case_id for verdict in reader.verdicts(CaseVerdict)] == ["c0", "c1", "c2"]


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("secret", ["sk-0123456789abcdef", "tiny"])
def test_a_secret_is_masked_where_it_stands_and_every_other_line_is_as_it_was(
    tmp_path: Path, secret: str, held: bool
) -> None:
    texts = [f"fine, Étienne {number}\u2028" for number in range(20)]
    texts[7] = f"it is {secret}"
    writer = LocalFiles(tmp_path, Masker({"KEY": secret})).create(a_plan(), [a_case()], {})
    if held:
        writer.hold(lambda write: None)
    for text in texts:
        writer.append_trace(a_trace(output=Output(text)))
        writer.append_results([a_result(reason=text)] * 2)
        writer.append_verdict(a_verdict(reasons=[text]))
    writer.hold(None)
    texts[7] = f"it is {MASKED}"
    assert [trace.output.final_answer for trace in writer.traces(Trace)] == texts
    assert [result.reason for result in writer.results(EvaluationResult)] == [one for one in texts for _ in range(2)]
    assert [reason for verdict in writer.verdicts(CaseVerdict) for reason in verdict.reasons] == texts
    writer.close()


def test_not_much_is_held(tmp_path: Path) -> None:
    writer = created(tmp_path)
    due: list[Callable[[], None]] = []
    write = writer.hold(due.append)
    writer.append_trace(a_trace(output=Output("small")))
    assert [*writer.traces(Trace)] == []
    writer.append_trace(a_trace(output=Output("x" * 100_000)))
    assert len([*writer.traces(Trace)]) == 2
    writer.append_verdict(a_verdict())
    write()
    assert len([*writer.verdicts(CaseVerdict)]) == 1
    writer.close()


@pytest.mark.parametrize("judged", ["before", "after"])
def test_no_verdict_is_written_where_its_trace_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judged: str
) -> None:
    writer = created(tmp_path)
    due: list[Callable[[], None]] = []
    writer.hold(due.append)

    def judge() -> None:
        writer.append_results([a_result()])
        writer.append_verdict(a_verdict())

    writer.append_trace(a_trace())
    if judged == "before":
        judge()

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(StorageError, match="No space left"):
            due[0]()
    if judged == "after":
        judge()
    with pytest.raises(StorageError):
        writer.close()
    for name in ("traces", "results", "verdicts"):
        assert (writer.folder / f"{name}.jsonl").read_bytes() == b""


def test_parts_cover_every_trace_once(tmp_path: Path) -> None:
    writer = created(tmp_path)
    for number in range(20):
        writer.append_trace(a_trace(case_id="x" * number * 37, trial=number))
    for count in range(1, 30):
        parts = writer.parts(count)
        assert len(parts) <= count
        assert [t.trial for part in parts for t in writer.traces(Trace, part)] == list(range(20))
    writer.close()


def test_a_run_without_traces_has_no_parts(tmp_path: Path) -> None:
    writer = created(tmp_path)
    assert writer.parts(4) == []
    writer.close()


def test_cases_are_found_by_position(tmp_path: Path) -> None:
    cases = [a_case(id=f"c{i}", recorded=msgspec.Raw(b'{"a":1}')) for i in range(50)]
    writer = LocalFiles(tmp_path).create(a_plan(), cases, {})
    assert [writer.case(i).id for i in (49, 0, 7)] == ["c49", "c0", "c7"]
    assert [case.id for case in writer.cases(47)] == ["c47", "c48", "c49"]
    assert bytes(writer.case(3).recorded) == b'{"a":1}'
    for index in (50, -1):
        with pytest.raises(InputError):
            writer.case(index)
    writer.close()


def test_cases_of_any_length_are_found_in_any_order(tmp_path: Path) -> None:
    inputs = ["x" * length for length in (10, 9000, 10, 20_000, 10, 10)]
    writer = LocalFiles(tmp_path).create(
        a_plan(), [a_case(id=f"c{i}", input=text) for i, text in enumerate(inputs)], {}
    )
    for index in (0, 1, 2, 3, 4, 5, 5, 2, 1, 3, 0, 4):
        assert (writer.case(index).id, writer.case(index).input) == (f"c{index}", inputs[index])
    writer.close()


def test_a_recorded_trace_in_several_lines_is_kept_in_one(tmp_path: Path) -> None:
    cases = [a_case(recorded=msgspec.Raw(b'{\n  "a": "x\\ny"\n}')), a_case(id="c2")]
    writer = LocalFiles(tmp_path).create(a_plan(), cases, {})
    assert msgspec.json.decode(writer.case(0).recorded) == {"a": "x\ny"}
    assert writer.case(1).id == "c2"
    writer.close()


def test_a_part_of_a_record_can_be_asked_for(tmp_path: Path) -> None:
    class Mark(msgspec.Struct):
        case_id: str

    writer = created(tmp_path)
    writer.append_trace(a_trace())
    assert list(writer.traces(Mark)) == [Mark("c1")]
    writer.close()


# judgements anew


def story(folder: Path) -> set[str]:
    reader = LocalFiles(folder.parent).read(folder.name)
    results = {r.reason for r in reader.results(EvaluationResult)}
    return results | {v.reasons[0] for v in reader.verdicts(CaseVerdict)}


_COPY_AT_EACH_STEP = """
import shutil, sys
from pathlib import Path
from evalwright.stores.local_files import LocalFiles
from evalwright.testing import a_plan, a_result, a_verdict

def copy(event, _):
    if watching and event in ("os.rename", "os.remove", "os.rmdir", "shutil.rmtree"):
        watching.clear()
        shutil.copytree(writer.folder, Path(sys.argv[1], f"copy{copies.pop()}"))
        watching.append(True)

def judged(word, to):
    to.append_results([a_result(reason=word)])
    to.append_verdict(a_verdict(reasons=[word]))

copies, watching = list(range(99, 9, -1)), []
writer = LocalFiles(Path(sys.argv[1])).create(a_plan(), [], {})
judged("old", writer)
judgements = writer.rewrite_judgements()
for number in range(2):
    share = judgements.share(number)
    judged("new", share)
    share.close()
sys.addaudithook(copy)
watching.append(True)
judgements.commit()
"""


def test_a_crash_at_any_step_of_a_commit_leaves_one_whole_set(tmp_path: Path) -> None:
    """Before every change of a name during the commit the folder is copied: what a crash would leave."""
    subprocess.run([sys.executable, "-c", _COPY_AT_EACH_STEP, str(tmp_path)], check=True)
    copies = sorted(tmp_path.glob("copy*"))
    stories = [story(folder) for folder in copies]
    assert {frozenset(found) for found in stories} == {frozenset({"old"}), frozenset({"new"})}
    for folder, before in zip(copies, stories, strict=True):
        LocalFiles(tmp_path).open(folder.name).close()
        assert story(folder) == before
        assert not list(folder.glob(".jud*"))


def test_appending_goes_on_after_a_commit(tmp_path: Path) -> None:
    writer = created(tmp_path)
    rewritten(writer)
    writer.append_results([a_result(reason="later")])
    writer.sync()
    assert [r.reason for r in writer.results(EvaluationResult)] == ["new", "later"]
    writer.close()


def test_a_share_that_was_never_finished_forbids_the_commit(tmp_path: Path) -> None:
    writer = created(tmp_path)
    writer.append_results([a_result(reason="old")])
    judgements = writer.rewrite_judgements()
    judgements.share(0).close()
    judgements.share(1).append_results([a_result(reason="new")])
    with pytest.raises(StorageError, match="never finished"):
        judgements.commit()
    judgements.abandon()
    assert [r.reason for r in writer.results(EvaluationResult)] == ["old"]
    writer.close()


def test_a_share_of_new_judgements_whose_folder_is_gone_says_so(tmp_path: Path) -> None:
    with closing(created(tmp_path)) as writer:
        draft = writer.rewrite_judgements()
        for folder in writer.folder.glob(".judging-*"):
            shutil.rmtree(folder)
        with pytest.raises(StorageError, match="judging"):
            draft.share(0).append_results([a_result()])


def test_judgements_that_cannot_be_put_in_place_keep_the_run_closed(tmp_path: Path) -> None:
    with closing(created(tmp_path)) as writer:
        folder = writer.folder
    (folder / ".judgements").mkdir()
    (folder / ".judgements" / "verdicts.jsonl").write_bytes(b"")
    (folder / "verdicts.jsonl").unlink()
    (folder / "verdicts.jsonl" / "in the way").mkdir(parents=True)
    with pytest.raises(StorageError, match="replace the results"):
        LocalFiles(tmp_path).open(folder.name)


def test_new_judgements_of_a_run_whose_folder_is_gone_are_refused(tmp_path: Path) -> None:
    with closing(created(tmp_path)) as writer:
        shutil.rmtree(writer.folder)
        with pytest.raises(StorageError, match=r"cannot write .*\.judging-.*: No such file"):
            writer.rewrite_judgements()


def test_a_disk_that_is_full_while_results_are_replaced_is_told(tmp_path: Path) -> None:
    with closing(created(tmp_path)) as writer:
        judgements = writer.rewrite_judgements()
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
        try:
            with pytest.raises(StorageError, match=r"cannot write .*results\.jsonl: File too large"):
                judgements.share(0).append_lines(b'"x"\n' * (1 << 20), b"")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            judgements.abandon()
