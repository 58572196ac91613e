"""`evalwright schema`."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["SCHEMAS", "command", "text_of"]

SCHEMAS = {
    "eval": ("evalwright.formats.native.schema:eval_schema", "eval.yaml, the suite"),
    "cases": ("evalwright.formats.native.schema:cases_schema", "cases.yaml, a dataset of type yaml"),
    "label": (
        "evalwright.importers.label_schema:label_schema",
        "a label of a person, one line of a file in JSON Lines",
    ),
    "prices": ("evalwright.formats.native.schema:prices_schema", "a price table, of metrics.price_table_path"),
    "case": ("evalwright.formats.native.schema:case_schema", "a case, one line of a dataset of type jsonl"),
}
"""By name, what makes the schema and what it is of."""


def text_of(name: str) -> str:
    """The schema as a file has it."""
    import json

    from evalwright.files.yaml import schema_address
    from evalwright.registry import resolve

    schema = resolve(SCHEMAS[name][0])()
    return json.dumps({"$schema": schema.pop("$schema"), "$id": schema_address(name), **schema}, indent=2) + "\n"


@click.command("schema")
@click.argument("name", required=False)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write to FILE instead of standard output.",
)
def command(name: str | None, out: Path | None) -> int:
    """Print the JSON Schema of a file that people write, for editors; without NAME list them."""
    from evalwright.cli.screen import say
    from evalwright.errors import InputError, did_you_mean
    from evalwright.files.durable import replace_file

    if name is None:
        if out is not None:
            raise click.UsageError("--out needs the NAME of a schema")
        say(f"{key:<6}  {what}" for key, (_, what) in SCHEMAS.items())
        return 0
    if name not in SCHEMAS:
        raise InputError(f"no schema {name!r}{did_you_mean(name, SCHEMAS)} (there are: {', '.join(SCHEMAS)})")
    if out is None:
        say([text_of(name).rstrip("\n")])
        return 0
    replace_file(out, text_of(name).encode())
    say([str(out)])
    return 0
