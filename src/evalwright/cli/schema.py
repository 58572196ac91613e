"""`evalwright schema`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalwright.cli.usage import Command, PathParam
from evalwright.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from evalwright.model.format import Ref

__all__ = ["command", "schemas", "text_of"]

_OF_NO_FORMAT: Mapping[str, tuple[Ref, str]] = {
    "label": (
        "evalwright.importers.label_schema:label_schema",
        "a human label, one line of a file in JSON Lines",
    ),
}


def schemas() -> dict[str, tuple[Ref, str]]:
    """By name, what makes each schema and what it describes: the native format's first, those of plug-ins last."""
    from evalwright.registry import NATIVE, format_of, formats

    native = format_of(NATIVE)
    others = [suite_format for suite_format in formats() if suite_format is not native]
    references: dict[str, tuple[Ref, str]] = {}
    for table in (native.schemas, _OF_NO_FORMAT, *(suite_format.schemas for suite_format in others)):
        references |= {name: entry for name, entry in table.items() if name not in references}
    return references


def text_of(name: str) -> str:
    """The schema as it is written to a file."""
    import json

    from evalwright.files.yaml import schema_address
    from evalwright.formats.shared.json_schema import DRAFT
    from evalwright.registry import our_formats, resolve

    schema = resolve(schemas()[name][0])()
    ours = name in _OF_NO_FORMAT or any(name in our_format.schemas for our_format in our_formats())
    address = {"$id": schema_address(name)} if ours else {}
    return json.dumps({"$schema": DRAFT, **address, **schema}, indent=2) + "\n"


@click.command("schema", cls=Command)
@click.argument("name", required=False)
@click.option(
    "--out",
    type=PathParam(dir_okay=False),
    metavar="FILE",
    help="Write to FILE instead of standard output.",
)
def command(name: str | None, out: Path | None) -> int:
    """Print the JSON Schema of a suite or data file, for editors; without NAME, list the schemas."""
    from evalwright.cli.screen import must_be_ours, print_out
    from evalwright.files.durable import make_folder, write_output

    known = schemas()
    if name is None:
        if out is not None:
            raise click.UsageError("--out needs the NAME of a schema")
        width = max(map(len, known))
        print_out(f"{key:<{width}}  {what}" for key, (_, what) in known.items())
        return 0
    if name not in known:
        raise InputError(f"no schema {name!r}{did_you_mean(name, known)} (there are: {', '.join(known)})")
    if out is None:
        print_out([text_of(name).rstrip("\n")])
        return 0
    must_be_ours(out, b'"$schema"', "a JSON Schema")
    make_folder(out.parent)
    write_output(out, [text_of(name).encode()])
    print_out([str(out)])
    return 0
