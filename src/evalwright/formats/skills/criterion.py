"""A judge of one criterion, who must quote what shows that it holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from evalwright.errors import EvaluatorError, Problem
from evalwright.evaluators.judges.calls import JudgeSettings, Prompt, ask, cost, failure, model_problems, spending
from evalwright.evaluators.judges.prompt_data import DATA_RULE, data_blocks
from evalwright.evaluators.judges.replies import only_object, reason_in, truth_in
from evalwright.formats.skills.evidence import evidence
from evalwright.model.artifact import Artifact
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["SkillCriterion"]

_TASK = (
    "You grade what an AI agent did, by one criterion. You are shown data of its work and then the criterion. "
    "The burden of proof is on the criterion: it holds only if the data shows that it does, in substance and not only "
    "in form. Where there is no evidence, or it could as well mean something else, it does not hold. "
    "What the agent says of its own success is a claim and no evidence of it. "
    "Reply with one JSON object and nothing else."
)
_QUESTION = (
    'Reply with this JSON object:\n{"evidence": the words of the data that decide, quoted, and where they stand (if '
    'there are none: what is missing), "passed": true if the criterion holds, else false}'
)
_SCHEMA = {
    "type": "object",
    "properties": {"evidence": {"type": "string"}, "passed": {"type": "boolean"}},
    "required": ["evidence", "passed"],
    "additionalProperties": False,
}
_NO_EVIDENCE = "the judge quoted no evidence"


class _Grade(NamedTuple):
    passed: bool
    evidence: str


class SkillCriterion(JudgeSettings, frozen=True, kw_only=True):
    """Whether `text` holds, by `model`, which sees neither the variant nor the name of the skill."""

    text: str
    model: str

    uses_artifact = True

    @property
    def judges(self) -> list[str]:
        return [self.model]

    @staticmethod
    def config_problems(values: Mapping[str, Any]) -> list[Problem]:
        return model_problems(values, [("model", values.get("model"))])

    async def evaluate(self, case: Case, trace: Trace, artifact: Artifact | None) -> Evaluation:
        blocks = data_blocks(evidence(case, trace, artifact, self.text))
        prompt = Prompt(f"{_TASK}\n\n{DATA_RULE}", f"{blocks}\n\nCriterion: {self.text}\n\n{_QUESTION}")
        detail = {"text": self.text, "judge_model": self.model, "judge_prompt_hash": prompt.digest}
        try:
            words = await ask(self, [(self.model, prompt, 0)], _SCHEMA, _read)
        except EvaluatorError as error:
            raise failure(error, detail) from error
        word = words[0]
        if word.value is None:
            assert word.error is not None
            raise failure(word.error, detail, words) from word.error
        grade = word.value
        passed = grade.passed and bool(grade.evidence.strip())
        reason = grade.evidence.strip() or _NO_EVIDENCE
        return Evaluation(passed, float(passed), reason, {**detail, **spending(words)}, cost_usd=cost(words))


def _read(text: str) -> _Grade:
    reply = only_object(text, ("passed",))
    return _Grade(truth_in(reply.get("passed"), "'passed'"), reason_in(reply.get("evidence")))
