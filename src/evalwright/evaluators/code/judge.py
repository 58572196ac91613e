"""A judge that is a program: one JSON object on stdin, one on stdout (AgentEvals 1.0, `code_judge`)."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec

from evalwright.errors import EvaluatorError, Problem, in_seconds
from evalwright.evaluators.code.payload import judge_payload, workspace_of
from evalwright.evaluators.combined.banded import banded
from evalwright.evaluators.judges.replies import BadReply, keys_once
from evalwright.evaluators.passed_variables import passed_variables
from evalwright.files.temporary import temporary_folder
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.processes import OUTPUT_LIMIT, FinishedCommand, run_command
from evalwright.session import session_path

__all__ = ["CodeJudge", "Reply", "asserted", "call_program", "printed", "script_of"]

_ALWAYS = ("PATH", "LANG")
_TOLD = 200
"""Characters of unreadable output that the reason quotes."""
_LAST = 2000
"""Characters of each stream in the message."""


class Reply(NamedTuple):
    """The program's reply. Read leniently, an unreadable one has the score 0, and the reasoning says why."""

    score: float
    hits: list[str]
    misses: list[str]
    reasoning: str
    details: dict[str, Any]
    verdict: str | None
    readable: bool = True


class CodeJudge(msgspec.Struct, frozen=True):
    """Score, hits and misses from the command `script`: a list, run without a shell, or a string for `sh`."""

    script: Annotated[list[str], msgspec.Meta(min_length=1)] | Annotated[str, msgspec.Meta(min_length=1)]
    cwd: str = "."
    config: dict[str, Any] | None = None
    timeout_seconds: Annotated[float, msgspec.Meta(gt=0)] = 120.0
    env: list[str] = []
    """Variables of the environment that the program gets, besides PATH, LANG and an empty folder as HOME."""
    lenient: bool = False
    """As in AgentV: a score outside 0 to 1 is moved to the nearest bound, and an unreadable reply counts as 0."""
    newer: bool = False
    """Whether the program expects what AgentV 4 gives to a `code-grader`: `output` is then the text of the answer."""

    paths: ClassVar[dict[str, str]] = {"cwd": "."}

    @staticmethod
    def config_problems(values: dict[str, Any]) -> list[Problem]:
        script = values.get("script")
        if isinstance(script, list) and not all(isinstance(word, str) and word.strip() for word in script):
            return [Problem("", "'script' must have no blank entries", key="script")]
        return []

    async def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        document = judge_payload(case, trace, self.config, newer=self.newer)
        extra = {"AGENTV_WORKSPACE_PATH": path} if (path := workspace_of(trace)) else {}
        limit = case.extra.get("timeout_seconds") or self.timeout_seconds
        try:
            async with asyncio.timeout(limit):
                command, lenient = script_of(self.script), self.lenient
                reply = await call_program(
                    command, self.cwd, document, extra, self.env, plain=self.newer, lenient=lenient
                )
        except TimeoutError:
            raise EvaluatorError(f"the code judge timed out after {in_seconds(limit)}", "timeout") from None
        return banded(reply.score, reply.hits, reply.misses, reply.reasoning, detail=reply.details)


def script_of(script: Sequence[str] | str) -> list[str]:
    """The command as a list; a string is run by the shell."""
    return ["sh", "-lc", script] if isinstance(script, str) else list(script)


async def call_program(
    command: Sequence[str],
    cwd: str,
    document: Mapping[str, Any],
    extra: Mapping[str, str] = {},
    env: Collection[str] = (),
    *,
    plain: bool = False,
    lenient: bool = False,
) -> Reply:
    """The program's reply. `env` names the variables that it gets; `extra` are further ones.

    With `plain`, output that is not a JSON object is the text of one assertion; the exit code says whether it holds.

    Raises EvaluatorError if a variable is not set, if the program cannot be started or exits with a code other than 0,
    and, unless `lenient`, for a reply without a score from 0 to 1.
    """
    finished = await _run(command, cwd, document, extra, env)
    text = _printed_text(finished)
    if plain and not text.startswith(("{", "[")) and (finished.exit_code == 0 or not finished.stderr.last.strip()):
        return _plain_reply(text, finished)
    _need_success(finished, "the code judge")
    reply = _read(text, lenient)
    if not lenient and not reply.readable:
        raise EvaluatorError(reply.reasoning, "bad_reply")
    if not lenient and not 0 <= reply.score <= 1:
        raise EvaluatorError(f"the code judge gave the score {reply.score!r}, expected one from 0 to 1", "bad_reply")
    return reply


async def printed(command: Sequence[str], cwd: str, document: Mapping[str, Any]) -> str:
    """The output of a program that reads a document. Raises EvaluatorError if it fails or prints nothing."""
    finished = await _run(command, cwd, document, {}, ())
    _need_success(finished, "the program of the prompt")
    if not (text := _printed_text(finished)):
        raise EvaluatorError("the prompt's program printed nothing", "no_prompt")
    return text


async def _run(
    command: Sequence[str], cwd: str, document: Mapping[str, Any], extra: Mapping[str, str], env: Collection[str]
) -> FinishedCommand:
    stdin = json.dumps(document, ensure_ascii=False).encode(errors="replace")
    with temporary_folder() as home:
        environment = {**passed_variables(env, _ALWAYS), "HOME": str(home), **extra}
        try:
            folder = session_path(cwd)
            return await run_command(command, env=environment, cwd=folder, stdin=stdin, output_limit=OUTPUT_LIMIT)
        except OSError as error:
            message = f"{command[0]!r} cannot be started: {error.strerror or error}"
            raise EvaluatorError(message, "not_started") from None


def _printed_text(finished: FinishedCommand) -> str:
    return finished.stdout.kept.decode(errors="replace").strip()


def _need_success(finished: FinishedCommand, what: str) -> None:
    if finished.exit_code != 0:
        message = ": ".join(filter(None, [f"{what} ended with {finished.how()}", _stream_ends(finished)]))
        raise EvaluatorError(message, "exit_code")


def _plain_reply(text: str, finished: FinishedCommand) -> Reply:
    messages = [text[-_LAST:] or finished.how()]
    passed = finished.exit_code == 0
    return Reply(float(passed), messages if passed else [], [] if passed else messages, "", {}, None)


def _stream_ends(finished: FinishedCommand) -> str:
    """The end of both streams: libraries report their errors on either."""
    last = [stream.last.decode(errors="replace")[-_LAST:].strip() for stream in (finished.stderr, finished.stdout)]
    return "; ".join(filter(None, [last[0], last[1] and f"standard output: {last[1]}"]))


def _read(text: str, lenient: bool) -> Reply:
    try:
        reply = json.loads(text, object_pairs_hook=None if lenient else keys_once)
    except BadReply as error:
        return _unreadable(f"is not clear ({error})", text)
    except (ValueError, RecursionError):
        return _unreadable("is no JSON", text)
    if not isinstance(reply, dict):
        return _unreadable("is no JSON object", text)
    if not lenient and not _are_clear(reply.get("assertions")):
        return _unreadable("has 'assertions' that are no list of a text and true or false as 'passed' each", text)
    hits, misses = (_texts(reply.get(key)) + asserted(reply, key == "hits") for key in ("hits", "misses"))
    score = reply.get("score")
    if score is None and reply.get("assertions") and (hits or misses):
        score = len(hits) / len([*hits, *misses])
    if isinstance(score, bool) or not isinstance(score, (int, float)) or not math.isfinite(score):
        return _unreadable("has no number as 'score'", text)._replace(hits=hits)
    reasoning, details, verdict = reply.get("reasoning"), reply.get("details"), reply.get("verdict")
    return Reply(
        score,
        hits,
        misses,
        reasoning if isinstance(reasoning, str) else "",
        {"details": details} if isinstance(details, dict) else {},
        verdict if verdict in ("pass", "borderline", "fail") else None,
    )


def _unreadable(what: str, text: str) -> Reply:
    reasoning = f"the output of the code judge {what}: {text[:_TOLD]!r}"
    return Reply(0.0, [], [], reasoning, {}, None, readable=False)


def _are_clear(assertions: Any) -> bool:
    """Whether each assertion says whether it holds: a text such as "false" would count as true."""
    return assertions is None or (
        isinstance(assertions, list)
        and all(
            isinstance(assertion, dict)
            and isinstance(assertion.get("text"), str)
            and isinstance(assertion.get("passed"), bool)
            for assertion in assertions
        )
    )


def asserted(reply: Mapping[str, Any], passed: bool) -> list[str]:
    """The texts of a reply's `assertions` ([{text, passed, evidence}], AgentV 4) that hold, or those that do not."""
    listed = reply.get("assertions")
    return [
        f"{item['text']} ({item['evidence']})" if isinstance(item.get("evidence"), str) else item["text"]
        for item in (listed if isinstance(listed, list) else ())
        if isinstance(item, dict) and isinstance(item.get("text"), str) and bool(item.get("passed")) is passed
    ]


def _texts(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str) and text.strip()] if isinstance(value, list) else []
