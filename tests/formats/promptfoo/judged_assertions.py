"""Assertions that scripted models judge."""

import msgspec

from evaluators.scripted_models import Scripted, case, judged, says, trace


def given(kind, replies, *, answer="On its way.", seen=None, variables=None, vectors=None, **keys):
    """The result of an assertion of this kind, and the models that it asked."""
    grader = {"id": "openai:gpt-4o", "label": "openai:gpt-4o", "config": {"replyRetries": 0}}
    provider = {"text": grader, "embedding": {**grader, "id": "openai:embedding:e"}}
    known = {"prompt": "Where is it?", "vars": variables or {"context": "a", "query": "q"}, "output": answer}
    on = msgspec.structs.replace(trace(answer), extra={"promptfoo": {**known, **(seen or {})}})
    models = Scripted(*map(says, replies), vectors=vectors)
    config = {"assertion": {"type": kind, "value": "x", "provider": provider, **keys}}
    return judged("promptfoo", config, models, on=on, of=case()), models
