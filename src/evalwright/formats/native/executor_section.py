"""The executor of an `eval.yaml` whose cells run on other machines."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET

from evalwright.files.key_paths import steps_of
from evalwright.formats.native.file import ExecutorSection, SystemSection, as_in_json
from evalwright.formats.native.suite_file import SuiteFile
from evalwright.model.plan import Executor, Placement, Variant
from evalwright.targets.portable import folder_to_send, named_outside

__all__ = ["executor_of"]


def executor_of(
    suite: SuiteFile, section: ExecutorSection, systems: Sequence[SystemSection], variants: Sequence[Variant]
) -> Executor:
    """The executor; files named by systems that cannot be sent to its cluster are reported to the suite's file."""
    settings = {key: value for key, value in section.plain().items() if key in section.keys()}  # noqa: SIM118
    del settings["pools"], settings["judges"]
    settings["address"] = section.address or None  # empty, where ${RAY_ADDRESS:-} is
    if "working_dir" not in section.written:
        settings["working_dir"] = UNSET
    judges = UNSET if section.judges is None else Placement(**section.judges.plain())
    settings = {key: value for key, value in settings.items() if value is not UNSET}
    executor = Executor(**as_in_json(settings), judges=judges)
    if executor.address is not None and (folder := folder_to_send(suite.path, executor, variants)) is not None:
        for system, variant in zip(systems, variants, strict=True):
            for key, message in named_outside(variant.config, folder):
                suite.report((*system.at(), *steps_of(key)), message)
    return executor
