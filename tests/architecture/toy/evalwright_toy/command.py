"""`evalwright toy`."""

import click


@click.command("toy")
@click.argument("word")
def command(word: str) -> int:
    """Say WORD as a toy does."""
    click.echo(f"toy says {word}")
    return 3
