"""One call of a coding agent: runs its program in a folder, within a time limit, and reads its output as an answer."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from evalwright.errors import TargetError, in_seconds
from evalwright.files.masker import Masker
from evalwright.files.temporary import temporary_folder
from evalwright.model.trace import Answer, TraceError
from evalwright.processes import FinishedCommand, run_command
from evalwright.session import environment
from evalwright.targets.coding_agent.homes import clean_home, login_secrets
from evalwright.targets.coding_agent.programs import AgentRequest, Program
from evalwright.targets.coding_agent.stream import TEXT, AgentStream

__all__ = ["SIGN_IN", "Agent", "AgentCommand", "AgentPlace", "ThisMachine", "not_found"]

SIGN_IN = "sign_in"
"""The error of an agent that is not signed in: every other call would end in it, too."""
_KEPT = 64 * 2**10
"""Bytes of stdout that are kept besides the stream's file, and of stderr."""
_STDERR_TAIL = 2_000
_ANOTHER = "install it, or name another with 'command' (--agent-command)"
_SIGN_IN = re.compile(
    r"authentication[_ ](?:failed|error|required)|no authentication|set an auth method"
    r"|invalid auth method|authorization is required|no api key found|invalid api key"
    r"|please run /login|not (?:logged|signed) in"
    r"|(?:log|sign) ?in (?:is )?required|oauth token (?:has )?expired"
    r"|(?:http|status(?: code)?|api error)\W{0,3}401\b|\b401\W{0,3}unauthori[sz]ed",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class AgentCommand:
    """A command that is ready to run, with its environment."""

    command: Sequence[str]
    env: Mapping[str, str]
    cwd: str


class AgentPlace(Protocol):
    """Where an agent's program runs: on this machine, or in a container."""

    def prepare(
        self, command: Sequence[str], env: Mapping[str, str], workspace: Path, home: Path | None
    ) -> AgentCommand:
        """The command to run there, in the workspace."""

    async def clear_up(self) -> None:
        """End whatever would go on running without us."""


class ThisMachine:
    """On this machine, with the rights of the user."""

    def prepare(
        self, command: Sequence[str], env: Mapping[str, str], workspace: Path, home: Path | None
    ) -> AgentCommand:
        return AgentCommand(command, env, str(workspace))

    async def clear_up(self) -> None:
        return


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """A coding agent, ready to be called for each case."""

    name: str
    program: Program
    command: Sequence[str]
    output: str
    """The input format of what it prints, or `text`."""
    seconds: float
    """The time limit of one call."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables in addition to the inherited ones."""
    clean: bool = True
    """Whether it gets an empty home, with only the login in it."""
    where: Callable[[], AgentPlace] = ThisMachine

    async def ask(self, request: AgentRequest, workspace: Path, keep: Path | None = None) -> Answer:
        """What the agent said and did, with the error if it broke off; its stream is copied into the folder `keep`.

        Raises TargetError if it cannot be started.
        """
        with temporary_folder() as folder:
            environ = {**self.program.env, **environment(), **self.env}
            masker = Masker(login_secrets(self.program, environ)) if self.clean else Masker({})
            stream = AgentStream(folder, self.program, masker)
            home = folder / "home" if self.clean and self.program.home else None
            try:
                env = environ if home is None else await asyncio.to_thread(clean_home, self.program, home, environ)
            except OSError as error:
                raise TargetError(f"no clean home for {self.name}: {error.strerror or error}") from None
            finished = await self._run(request, stream, env, workspace, home)
            if keep is not None:
                await asyncio.to_thread(_keep, stream, keep)
            answer = await asyncio.to_thread(stream.answer, self.output, request.prompt)
        answer.error = self._error(answer, finished, stream)
        if answer.error is None and answer.output.final_answer is None and self.output != TEXT:
            answer.output.final_answer = ""  # it worked and said nothing: its files are the answer
        return answer

    async def _run(
        self, request: AgentRequest, stream: AgentStream, env: Mapping[str, str], workspace: Path, home: Path | None
    ) -> FinishedCommand | None:
        """How the program ended; None if its time was up. The stream has what it printed until then."""
        where = self.where()
        words = [*self.command, *self.program.words(request)]
        stdin = request.prompt.encode(errors="replace") if self.program.reads_stdin else b""
        started = where.prepare(words, env, workspace, home)
        try:
            with stream:
                async with asyncio.timeout(self.seconds):
                    return await run_command(
                        started.command,
                        env=started.env,
                        cwd=started.cwd,
                        stdin=stdin,
                        output_limit=_KEPT,
                        on_stdout=stream.feed,
                    )
        except TimeoutError:
            return None
        except OSError as error:
            raise TargetError(self._not_started(error, started)) from None
        finally:
            await where.clear_up()

    def _not_started(self, error: OSError, started: AgentCommand) -> str:
        if error.errno == errno.E2BIG:
            return f"the prompt is too long for the command line of {self.name}"
        if error.errno == errno.EINVAL:
            return f"the prompt cannot be an argument of {self.name}: {error.strerror}"
        if error.errno == errno.ENOENT:
            return not_found(started.command[0], started.env)
        return f"cannot start {started.command[0]!r}: {error.strerror or error}"

    def _error(self, answer: Answer, finished: FinishedCommand | None, stream: AgentStream) -> TraceError | None:
        """Why there is no verdict: the infrastructure failed, or the agent itself said that it did."""
        if finished is None:
            return self._too_late(answer.error)
        if "stopped" in answer.extra:
            return None  # it reached one of our limits: the work so far is judged
        stderr = finished.stderr.last.decode(errors="replace").strip()[-_STDERR_TAIL:]
        error = answer.error
        if finished.exit_code != 0:
            messages = [] if error is None else [error.message]
            beside = stderr or stream.odd
            messages += [beside] if beside and beside not in messages else []
            error = TraceError("agent_error", ": ".join([f"{self.name} ended with {finished.how()}", *messages]))
        elif error is None and stream.empty and self.output != TEXT:
            error = TraceError("agent_error", f"{self.name} printed no messages")
        elif error is None and self.program.ends and not stream.ended:
            error = TraceError("agent_error", f"what {self.name} printed breaks off before its end")
        if error is None:
            return None
        texts = " ".join([error.message, stderr, stream.odd, *sorted(stream.error_words)])
        return TraceError(SIGN_IN, error.message, status=401) if _SIGN_IN.search(texts) else error

    def _too_late(self, reported: TraceError | None) -> TraceError:
        """That its time was up, and its last error: many agents keep retrying for as long as they may."""
        late = f"{self.name} had not ended within {in_seconds(self.seconds)}"
        if reported is None:
            return TraceError("timeout", late)
        if _SIGN_IN.search(reported.message):
            return TraceError(SIGN_IN, f"{late}: {reported.message}", status=401)
        return TraceError("timeout", f"{late}; its last error: {reported.message}")


def not_found(program: str, env: Mapping[str, str]) -> str:
    """The message for a missing program: where it was looked for, and how to name another."""
    if "/" in program:
        return f"there is no program {program!r}; {_ANOTHER}"
    looked = os.pathsep.join(os.get_exec_path(dict(env)))
    return f"the program {program!r} is not in the PATH ({looked}); {_ANOTHER}"


def _keep(stream: AgentStream, folder: Path) -> None:
    with suppress(OSError):
        folder.mkdir(exist_ok=True)
        shutil.copyfile(stream.raw, folder / stream.raw.name)
