"""A Letta suite with its dataset and functions on disk, and what is said about it and its runs."""

from evalwright.formats.loading import load_suite
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.reports.terminal import run_lines
from evalwright.reports.text import Paint
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run

SUITE = """\
name: support
dataset: data.jsonl
target: {kind: letta_agent, agent_id: agent-1}
graders:
  right: {kind: tool, function: contains}
  plain: {kind: tool, function: ascii_printable_only}
gate: {kind: simple, metric_key: right, op: gte, value: 0.5}
"""
DATA = '{"input": "capital of France?", "ground_truth": "Paris"}\n{"input": "of Italy?", "ground_truth": "Rome"}\n'
AGENT = """\
from letta_evals.decorators import agent_factory, extractor, grader, reward_composer, suite_setup
from letta_evals.models import GradeResult, Sample
from letta_client import CreateBlock
from letta_client.types import ToolCallMessage

SEEN = []


def knows_france(message, ctx):
    SEEN.append((message, ctx.turn, ctx.run))
    return "It is Paris" if "France" in message else "No idea"


async def remembers(message, ctx):
    if message.startswith("I am "):
        ctx.blocks["human"] = message.removeprefix("I am ")
        return None
    return f"You are {ctx.blocks.get('human', 'unknown')}"


def uses_a_tool(message, ctx):
    call = {"name": "find", "arguments": '{"q": 1}', "tool_call_id": "c"}
    return [
        {"message_type": "tool_call_message", "tool_call": call},
        {"message_type": "tool_return_message", "tool_call_id": "c", "tool_return": "found", "status": "success"},
        "done",
    ]


def silent(message, ctx):
    return None


def raises(message, ctx):
    raise RuntimeError("server hiccup")


@agent_factory
async def stocked(client, sample: Sample) -> str:
    item = sample.agent_args["item"]
    return (await client.agents.create(memory_blocks=[CreateBlock(label="item", value=item)], model="m")).id


def stock(message, ctx):
    return f"I have {ctx.blocks['item']} ({ctx.model})"


@grader
def halves(sample: Sample, submission: str) -> "GradeResult":
    return GradeResult(score=0.5, rationale=f"{sample.id} said {submission}", metadata={"x": 1})


@grader
async def explodes(sample, submission):
    raise ValueError("no")


@extractor
def tools(trajectory, config):
    return " ".join(m.tool_call.name for turn in trajectory for m in turn if isinstance(m, ToolCallMessage))


@grader
def boasts(sample, submission):
    grade = GradeResult(score=0.5)
    grade.score = 2.0
    return grade


@grader
def overrates(sample, submission):
    return GradeResult(score=1.5, rationale=3)


@grader
def agrees(sample, submission):
    return GradeResult(score=sample.ground_truth in submission)


@grader
def forgets(sample, submission):
    return {"rationale": "fine"}


@grader
def says_nothing(sample, submission):
    return None


@reward_composer
def twice(ctx):
    return 2


@reward_composer
def praises(ctx):
    return {"x": 1}


@reward_composer
def spelt(ctx):
    return "0.5"


@reward_composer
def halved(ctx):
    return 0.5 + ctx.grades["right"].score / 2


@suite_setup
def broken():
    raise ValueError("disk full")


@suite_setup
def leaves():
    raise SystemExit("disk full")
"""


def run(project, suite=SUITE, data=DATA, target="agent.py:knows_france", **options):
    (project / "suite.yaml").write_text(suite)
    (project / "data.jsonl").write_text(data)
    settings = {**({"target": target} if target else {}), **options}
    loaded = load_suite(project / "suite.yaml", options=settings)
    loaded.out = project / "runs"
    return run_suite(loaded)


def rows(outcome):
    reader, _ = open_run(outcome.run_dir)
    return {(row.case_id, row.evaluator): row for row in reader.results(EvaluationResult)}


def statuses(outcome):
    reader, _ = open_run(outcome.run_dir)
    return {v.case_id: v.status for v in reader.verdicts(CaseVerdict)}


def heard(project, suite, data, **options):
    """What is noticed of a suite by the time that its samples are read."""
    (project / "suite.yaml").write_text(suite)
    (project / "data.jsonl").write_text(data)
    loaded = load_suite(project / "suite.yaml", options={"target": "agent.py:knows_france", **options})
    for _ in loaded.cases:
        pass
    return [(warning.key, warning.message) for warning in loaded.warnings]


def lines_of(outcome):
    return [" ".join(line.split()) for line in run_lines(outcome.plan, outcome.summary, Paint(False))]
