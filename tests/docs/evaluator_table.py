"""The table of all evaluators in docs/evaluators.md. `python tests/docs/evaluator_table.py` writes it."""

from itertools import groupby
from pathlib import Path

from evalwright.evaluators.catalogue import ListedEvaluator, catalogue

PAGE = Path(__file__).parents[2] / "docs" / "evaluators.md"
BEGIN, END = "<!-- the table of `evalwright list evaluators` -->\n", "<!-- end of the table -->\n"


def table() -> str:
    parts = []
    for group, members in groupby(catalogue(), key=lambda one: one.group):
        rows = [
            f"| `{member.name}` | {member.sentence} | {member.format} | {_similar(member)} |\n" for member in members
        ]
        parts.append(f"### {group}\n\n| type | | words of | similar |\n|---|---|---|---|\n{''.join(rows)}")
    return "\n".join(parts)


def _similar(one: ListedEvaluator) -> str:
    return "; ".join(f"`{name}`: {difference}" for name, difference in one.see.items())


def written() -> str:
    return PAGE.read_text().partition(BEGIN)[2].partition(END)[0].strip() + "\n"


if __name__ == "__main__":
    before, begin, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{before}{begin}\n{table()}\n{END}{rest.partition(END)[2]}")
