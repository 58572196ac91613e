"""What another package adds to evalh: written for `eval_harness`, which is not installed here."""

from typing import ClassVar

from eval_harness.core.errors import ConfigError
from eval_harness.core.models import EvaluationResult, Trace, TraceError, TraceOutput
from eval_harness.core.time import utc_now
from eval_harness.evaluators.base import Evaluator


class MostWords(Evaluator):
    """At most so many words."""

    type: ClassVar[str] = "most_words"

    @classmethod
    def validate_config(cls, config):
        if not isinstance(config.get("most"), int):
            raise ConfigError("most_words: 'most' (int) is required")

    async def evaluate(self, case, trace, artifact):
        now = utc_now()
        words = (trace.output.final_answer or "").split()
        return EvaluationResult(
            run_id=trace.run_id,
            case_id=case.id,
            variant_name=trace.variant_name,
            evaluator=self.name,
            evaluator_type=self.type,
            passed=len(words) <= self._config["most"],
            score=1.0,
            reason=f"{len(words)} words",
            detail={"rows": [(1, case.id)], "removed": artifact and artifact.diff.removed},
            started_at=now,
            finished_at=now,
            latency_ms=0,
            error=None if words else TraceError(type="no_words", message="nothing was said"),
        )


class Echo:
    def __init__(self, name, prefix, **rest):
        self.name, self._prefix, self._open = name, prefix, False

    async def __aenter__(self):
        self._open = True
        return self

    async def __aexit__(self, *exception):
        self._open = False

    async def run(self, case, variant, workspace):
        assert self._open
        now = utc_now()
        answer = f"{self._prefix} {case.input['user_message']} {variant.metadata.get('mood')} {workspace}"
        return Trace(
            run_id="",
            case_id=case.id,
            variant_name=variant.name,
            started_at=now,
            finished_at=now,
            latency_ms=0,
            input=case.input,
            output=TraceOutput(final_answer=answer),
        )


class Added:
    def __init__(self, name="added", *, value, **rest):
        self.name, self._value = name, value

    async def __aenter__(self):
        return self

    async def __aexit__(self, *exception): ...

    async def enrich(self, trace):
        trace.extra["added"] = self._value
        trace.metrics.token_input = 7
        return trace
