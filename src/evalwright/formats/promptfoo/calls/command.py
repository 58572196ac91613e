"""`exec:`: a command, called with the prompt, the provider's options and the context as further arguments."""

from __future__ import annotations

import shlex

from evalwright.errors import InputError, Problem, TargetError
from evalwright.formats.promptfoo.calls import Caller, ProviderCall, ProviderReply
from evalwright.formats.promptfoo.providers import Provider, called_of
from evalwright.formats.promptfoo.values import compact_json
from evalwright.processes import run_command

__all__ = ["Command"]

_TAIL = 2000
"""Characters of stderr in the error of a failed command."""


class Command(Caller):
    """`exec:`: starts a command for each call; its last arguments are the prompt, the options and the context.

    Raises InputError for words that name no command.
    """

    def __init__(self, provider: Provider, folder: str) -> None:
        try:
            self._words = shlex.split(called_of(provider).removeprefix("exec:"))
        except ValueError as error:
            raise InputError(Problem("", f"{called_of(provider)!r}: {error}", key="providers")) from None
        if not self._words:
            raise InputError(Problem("", f"{called_of(provider)!r} names no command", key="providers"))
        self._folder = folder
        known = {key: provider[key] for key in ("id", "label", "config", "env") if key in provider}
        self._options = compact_json({"config": {}, "env": {}, **known})

    async def __call__(self, call: ProviderCall) -> ProviderReply:
        words = [*self._words, call.prompt, self._options, compact_json(call.context)]
        try:
            finished = await run_command(words, env=call.environment, cwd=self._folder)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise TargetError(f"cannot start {self._words[0]!r}: {reason}") from None
        complaint = finished.stderr.last.decode(errors="replace").strip()[-_TAIL:]
        ending = f"; stderr: {complaint}" if complaint else ""
        if finished.exit_code != 0:
            raise TargetError(f"the command ended with {finished.how()}{ending}")
        if finished.stdout.cut:
            raise TargetError(f"the command wrote {finished.stdout.size} bytes, more than are kept of an output")
        output = finished.stdout.kept.decode(errors="replace").strip()
        if complaint and not output:
            raise TargetError(f"the command wrote no output{ending}")
        return ProviderReply(output)
