"""A format of another package: `# toy NAME`, `answer FILE:FUNCTION`, and a line `QUESTION -> ANSWER` for each case."""

from evalwright.model.format import Format, Option

FORMAT = Format(
    name="toy",
    title="Toy",
    summary="Questions and answers, line by line.",
    suffixes=(".toy",),
    detects="evalwright_toy.suite:detects",
    load="evalwright_toy.suite:load",
    options=(
        Option(("--loud",), "flag", help="Accept answers in capitals."),
        Option(("--first",), "int", minimum=1, metavar="N", help="Read the first N questions only."),
    ),
    write="evalwright_toy.suite:write",
    targets={"toy_agent": "evalwright_toy.running:Agent"},
    evaluators={"toy_same": "evalwright_toy.running:Same"},
    totals="evalwright_toy.running:ToyTotals",
    command="evalwright_toy.command:command",
    shims={"toylib": {"polite": "evalwright_toy.running:polite"}},
)
