"""JSON Schema of a human label: one line of a file of labels in JSON Lines.

The reader accepts names of columns in any case and with spaces, so patterns stand for them.
"""

from __future__ import annotations

from typing import Any

from evalwright.importers.labels import NAMES_OF_COLUMNS, WORDS_OF_VERDICTS

__all__ = ["label_schema"]

_Schema = dict[str, Any]

_NULL: _Schema = {"type": "null"}
_TEXT: _Schema = {"type": ["string", "null"]}
_EMPTY = r"\s*"

_OF_SAMPLES: dict[str, _Schema] = {
    "sampling": {
        "description": "How the answer was chosen for labelling. Labels of answers chosen by their results "
        "(`disagree`, `threshold`) are left out of estimates, which need a random sample; those of a `balanced` "
        "one are weighted."
    },
    "stratum": {
        "description": "Needed for a `balanced` sample: the evaluator's verdict when the answer was drawn, `pass` "
        "or `fail`."
    },
    "stratum_size": {
        "description": "Needed for a `balanced` sample: how many answers of the variant had this verdict then."
    },
}


def label_schema() -> _Schema:
    """The schema of one label, an object with the same columns as a CSV table."""
    words = "|".join(_in_any_case(word) for word in [*WORDS_OF_VERDICTS, "unsure"])
    about = {
        "case_id": {**_TEXT, "description": "The case, as the run names it."},
        "evaluator": {**_TEXT, "description": "The evaluator whose verdicts are compared with this one."},
        "verdict": {
            "description": "The labeller's verdict; it may be `unsure` or empty only if `labelled_at` is given.",
            "anyOf": [_NULL, {"enum": [True, False, 0, 1]}, {"type": "string", "pattern": rf"^\s*({words})?\s*$"}],
        },
        "score": {
            "description": "A score on the evaluator's own scale.",
            "anyOf": [
                _NULL,
                {"type": "number"},
                {"type": "string", "pattern": rf"^({_EMPTY}|\s*[-+]?[\d._]+([eE][-+]?\d+)?\s*)$"},
            ],
        },
        "variant": {**_TEXT, "description": "Needed if several variants answered the case."},
        "trial": {
            "description": "From 0; needed if a case was run several times.",
            "anyOf": [
                _NULL,
                {"type": "number", "minimum": 0},
                {"type": "string", "pattern": rf"^({_EMPTY}|\s*\+?[\d_]+\s*)$"},
            ],
        },
        "attempt": {
            "description": "From 1; the attempt whose answer was labelled. A label of an answer that a retry replaced "
            "does not count.",
            "anyOf": [
                _NULL,
                {"type": "number", "minimum": 1},
                {"type": "string", "pattern": rf"^({_EMPTY}|\s*\+?[\d_]+\s*)$"},
            ],
        },
        "run": {**_TEXT, "description": "A, B or the id of a run, if labels are about two."},
        "labeller": {"description": "Who labelled."},
        "labelled_at": {"description": "When; the last label of a labeller for an answer counts."},
        **_OF_SAMPLES,
    }
    return {
        "title": "evalwright: a label",
        "type": "object",
        "properties": {name: {} for name in about},
        "patternProperties": {_column(name): schema for name, schema in about.items()},
        "allOf": [
            _has("case_id"),
            _has("evaluator"),
            {"anyOf": [_has("verdict"), _has("score"), _has("labelled_at")]},
        ],
    }


def _column(name: str) -> str:
    """A pattern for the names of a column."""
    aliases = "|".join(_in_any_case(alias).replace("_", r"(_|\s+)") for alias in NAMES_OF_COLUMNS[name])
    return rf"^\s*({aliases})\s*$"


def _in_any_case(word: str) -> str:
    return "".join(f"[{letter}{letter.upper()}]" if letter.isalpha() else letter for letter in word)


def _has(name: str) -> _Schema:
    """One of the keys has this name."""
    return {"not": {"propertyNames": {"not": {"pattern": _column(name)}}}}
