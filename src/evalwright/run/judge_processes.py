"""The processes that judge a run again: each judges a part of it, and sends how far it is and what it counted."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING

from evalwright.errors import EvalwrightError, InputError
from evalwright.evaluators.build import build
from evalwright.model.plan import Plan
from evalwright.model.protocols import JudgementShare, Part
from evalwright.registry import load
from evalwright.run.cells import RunState
from evalwright.run.children import begin_child, next_message
from evalwright.run.judge_part import JudgingJob, judge_part
from evalwright.run.origin import acts
from evalwright.scoring.tally import Tally
from evalwright.session import Session
from evalwright.session.signals import Signals

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkProcess

__all__ = ["import_ahead", "judge_in_processes"]


def judge_in_processes(
    job: JudgingJob, parts: list[Part], shares: list[JudgementShare], state: RunState, signals: Signals
) -> Tally:
    """All parts but the last one in children, the last one here."""
    tally = Tally.of(job.plan)
    if not parts:
        return tally
    children = []
    try:
        with signals.held():  # Python swallows exceptions in functions that are called at a fork
            for part, share in zip(parts[:-1], shares[:-1], strict=True):
                children.append(_start_part(job, part, share))
        with closing(shares[-1]):
            judge_part(job, parts[-1], shares[-1], tally, state.advance)
        for _, receiver in children:
            tally.merge(_received_tally(receiver, job, state))
    finally:
        for child, _ in children:
            # Also after an error: a child whose pipe is no longer read would wait forever.
            child.kill()
            child.join()
    return tally


def _start_part(job: JudgingJob, part: Part, share: JudgementShare) -> tuple[ForkProcess, Connection]:
    """A child that judges a part, and where its messages come from."""
    import multiprocessing  # few traces are judged in this process alone

    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(os.getpid(), job, part, share, sender), daemon=True)
    child.start()
    # Only the child has the other end now: if it dies, reading ends instead of waiting forever.
    sender.close()
    return child, receiver


def import_ahead(plan: Plan) -> None:
    """Import here what evaluators need, once rather than in every process.

    Only evaluators that merely look at a trace are built for that: others may start threads, which end at a fork.
    """
    for spec in plan.evaluators:
        ours = getattr(load("evaluators", spec.type), "__module__", "").startswith("evalwright.")
        if ours and spec.extractor is None and not acts(spec):
            build(spec)


def _child(parent: int, job: JudgingJob, part: Part, share: JudgementShare, sender: Connection) -> None:
    begin_child(parent)
    tally = Tally.of(job.plan)
    try:
        with Session(owns_process=True), closing(share):  # of this process: exits are refused by process
            judge_part(job, part, share, tally, sender.send)
        sender.send(job.writer.damage)
        sender.send(tally)
    except EvalwrightError as error:
        sender.send(error.args[0] if isinstance(error, InputError) else error)
    sender.close()


def _received_tally(receiver: Connection, job: JudgingJob, state: RunState) -> Tally:
    while not isinstance(message := next_message(receiver), Tally):
        if isinstance(message, str):
            raise InputError(message)
        if isinstance(message, list):
            job.writer.damage += [note for note in message if note not in job.writer.damage]
        else:
            state.advance(message)
    return message
