"""The case as it was run (msgspec): one line of `cases.jsonl`, and what targets and evaluators get.

It is the produced twin of the authored `EvalCase`, so that resuming and re-evaluating read a run without the author's
files and without pydantic. What it asks and what evaluators look for have one hash each: equal hashes mean that they
were run alike. Hashes are made before secrets are masked, because two different values may both be stored as `${NAME}`.
"""

# No `from __future__ import annotations`: msgspec resolves annotations that are strings in the module named by the
# class, which for public records is `evalwright`.

import re
from collections.abc import Callable, Iterable
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec

from evalwright.errors import InputError
from evalwright.model.cell import case_key
from evalwright.model.conversation import ConversationExpected
from evalwright.model.plan import EvaluatorSpec

if TYPE_CHECKING:
    from evalwright.model.case import EvalCase

__all__ = ["Case", "Expected", "case_digest", "evaluator_digests", "metadata_text", "snapshot", "with_digest"]


class Expected(msgspec.Struct, gc=False, repr_omit_defaults=True):
    """What the author of a case expects of the answer. Every part is optional.

    `must_call_tools` are names of tools that must each be called at least once. `answer_should_include` and
    `answer_should_not_include` are texts to be found in the answer, or not. `facts` is the ground truth by name.
    `must_modify_files` and `must_not_modify_files` are paths in the workspace.
    """

    must_call_tools: list[str] = []
    answer_should_include: list[str] = []
    answer_should_not_include: list[str] = []
    facts: dict[str, Any] = {}
    must_modify_files: list[str] = []
    must_not_modify_files: list[str] = []
    conversation: ConversationExpected | msgspec.UnsetType | None = msgspec.UNSET
    """What is expected of the conversation as a whole; None if the case expects nothing."""


class Case(msgspec.Struct, gc=False, repr_omit_defaults=True):
    """One case: an input for the system, and what is expected of the answer.

    `input` is anything that JSON can hold. `metadata` is for filters, slices and reports, `tags` for `--tag`. Cases
    with the same `group` are not independent of each other, and count as one unit in intervals. `extra` has what only
    the case's format has. `recorded` is the raw JSON of a recorded trace, decoded by the replay target only.

    Example:
        `Case("refund", "I want my money back", expected=Expected(answer_should_include=["refund"]))`
    """

    id: str
    input: Any
    expected: Expected = msgspec.field(default_factory=Expected)
    metadata: dict[str, Any] = {}
    tags: list[str] = []
    recorded: msgspec.Raw = msgspec.Raw(b"null")
    group: str | None = None
    """Cases of one group (a conversation, a document) are not independent of each other."""
    description: str | None = None
    note: str | None = None
    extra: dict[str, Any] = {}
    """What else the case's format has: arguments of targets, variables of rubrics, ..."""
    evaluators: list[EvaluatorSpec] | None = None
    """The case's own evaluators, if the plan says that cases have them."""
    schema_version: str = "1.0"
    occurrence: int | msgspec.UnsetType = msgspec.UNSET
    """Which of the cases with this id it is, from 1, if another case has the same id, or if it has no id."""
    digest: str | msgspec.UnsetType = msgspec.UNSET
    """The hash of what the case asks and expects, made before secrets were masked."""

    @property
    def key(self) -> str:
        """A name that is unique in the run."""
        return case_key(self.id, self.occurrence)

    def argument(self) -> dict[str, Any]:
        """The case as plain data for user code: new containers each time, without the recorded trace."""
        return {
            "schema_version": self.schema_version,
            "id": self.id,
            "input": msgspec.to_builtins(self.input),
            "metadata": msgspec.to_builtins(self.metadata),
            "expected": msgspec.to_builtins(self.expected),
            "tags": list(self.tags),
        }


def snapshot(case: "EvalCase | Case") -> Case:
    """The produced twin of an authored case, as it is run and stored: plain JSON data.

    A `Case` is returned as it is: some formats read their cases as such. Raises InputError for what JSON cannot hold.
    """
    if isinstance(case, Case):
        return case
    try:
        return msgspec.json.decode(case.model_dump_json(), type=Case)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the case {case.id!r} contains what JSON cannot hold: {error}") from error


def metadata_text(value: Any) -> str:
    """A value of a case's metadata as groups, slices and filters name it."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


_NUMBERED = re.compile(r"\A([\w.:]+:<\w+>)#\d+\Z")
_NOTHING_BESIDE: list[Any] = [{}, None]
"""What most cases are judged by besides their expectation."""
_sorted_json = msgspec.json.Encoder(order="sorted").encode
_hash = partial(blake2b, digest_size=12)


def case_digest(case: Case) -> str:
    """The hash of input, expectation, group, and whatever else the case is judged by."""
    beside = _NOTHING_BESIDE
    if case.extra or case.evaluators is not None:
        beside = _placeless(msgspec.to_builtins([case.extra, case.evaluators]))
    return _hash(_sorted_json([case.input, case.expected, case.group, beside])).hexdigest()


def with_digest(case: Case) -> Case:
    """The case with its hash, as a run stores it."""
    return msgspec.structs.replace(case, digest=case_digest(case))


def _nothing(_path: str) -> str:
    return ""


def evaluator_digests(specs: Iterable[EvaluatorSpec], content: Callable[[str], str] = _nothing) -> dict[str, str]:
    """By name, hashes of what determines the evaluators' verdicts; weights are left out, as they belong to the suite.

    `content` returns the hash of the file at an absolute path, "" if there is no file: a prompt or patch in a file
    determines verdicts as much as one in the configuration.
    """
    digests = {}
    for spec in specs:
        parts = [spec.type, spec.config, spec.threshold, spec.threshold_op, spec.required, spec.extractor]
        digests[spec.name] = _hash(_sorted_json(_placeless(msgspec.to_builtins(parts), content))).hexdigest()
    return digests


def _placeless(value: Any, content: Callable[[str], str] = _nothing) -> Any:
    """Absolute paths are replaced by their last part and the file's hash: a suite moved to another folder is the same
    suite. Functions that no process finds by name are not numbered: the number depends on what else a run was given."""
    if isinstance(value, dict):
        return {key: _placeless(inner, content) for key, inner in value.items()}
    if isinstance(value, list):
        return [_placeless(inner, content) for inner in value]
    if not isinstance(value, str):
        return value
    if not value.startswith("/"):
        return _NUMBERED.sub(r"\1", value)
    name, inside = value.rpartition("/")[2], content(value)
    return f"{name}:{inside}" if inside else name
