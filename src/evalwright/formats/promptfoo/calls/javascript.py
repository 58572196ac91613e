"""Providers in JavaScript and TypeScript files, run by a Node process that is kept."""

from __future__ import annotations

from evalwright.errors import TargetError
from evalwright.formats.promptfoo.calls import Caller, ProviderCall, ProviderReply
from evalwright.formats.promptfoo.calls.replies import reply_in
from evalwright.formats.promptfoo.faults import ScriptError
from evalwright.formats.promptfoo.providers import Provider, called_of
from evalwright.formats.promptfoo.scripts import provide
from evalwright.formats.promptfoo.sources import split_function

__all__ = ["JavaScriptFile"]


class JavaScriptFile(Caller):
    """Calls the provider that a file for Node exports."""

    def __init__(self, provider: Provider, folder: str) -> None:
        self._folder = folder
        self._file, self._name = split_function(called_of(provider).removeprefix("javascript:"))
        self._options = {"id": provider["id"], "config": provider.get("config", {}), "env": provider.get("env", {})}

    async def __call__(self, call: ProviderCall) -> ProviderReply:
        try:
            returned = await provide(self._folder, self._file, self._name, self._options, [call.prompt, call.context])
        except ScriptError as error:
            kind = "timeout" if error.type == "timeout" else "provider_error"
            raise TargetError(str(error), kind) from None
        return reply_in(returned)
