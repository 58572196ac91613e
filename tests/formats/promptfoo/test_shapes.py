"""Whatever stands under a key and is of the wrong kind is a mistake that names the key, found before anything runs."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from formats.promptfoo.runs import write

TEST: dict[str, Any] = {
    "description": "a test",
    "vars": {"q": "a"},
    "threshold": 0.5,
    "prompts": ["short"],
    "providers": ["echo"],
    "metadata": {"team": "a"},
    "assertScoringFunction": "file://code.py:score",
    "disableDefaultAsserts": False,
    "options": {
        "transform": "output", "transformVars": "vars", "prefix": "a", "suffix": "b", "storeOutputAs": "last",
        "rubricPrompt": "Judge {{output}}", "factuality": {"agree": 1}, "disableVarExpansion": False,
        "disableDefaultAsserts": False, "disableConversationVar": False, "provider": "echo",
    },
    "assert": [
        {
            "type": "contains", "value": "a", "threshold": 0.5, "weight": 2, "metric": "m", "transform": "output",
            "config": {"a": 1}, "provider": "echo", "rubricPrompt": "Judge {{output}}",
        },
        {"type": "assert-set", "assert": [{"type": "contains", "value": "a"}], "threshold": 0.5},
    ],
}  # fmt: skip
FULL: dict[str, Any] = {
    "description": "all of it",
    "env": {"PLACE": "here"},
    "prompts": [{"raw": "Say {{q}}", "label": "short", "config": {"a": 1}}],
    "providers": [
        "echo",
        {"id": "file://code.py:ask", "label": "own", "config": {}, "prompts": ["short"], "delay": 1, "env": {"A": "b"}},
        {"id": "https://localhost/", "config": {
            "method": "POST", "headers": {"a": "b"}, "queryParams": {"a": "b"}, "transformResponse": "json.a",
        }},
        {"id": "openai:chat:gpt-5", "config": {
            "temperature": 0.5, "max_tokens": 9, "headers": {"a": "b"}, "passthrough": {"a": "b"},
            "apiBaseUrl": "https://localhost/", "apiKeyEnvar": "A_KEY", "replyRetries": 1,
        }},
    ],
    "defaultTest": copy.deepcopy(TEST),
    "tests": [TEST],
    "scenarios": [{"description": "both", "config": [{"vars": {"q": "a"}}], "tests": [copy.deepcopy(TEST)]}],
    "evaluateOptions": {"maxConcurrency": 2, "repeat": 1, "delay": 1, "timeoutMs": 9, "filterSampleSeed": 1},
    "commandLineOptions": {"filterRange": "0:2", "filterSample": 1},
    "derivedMetrics": [{"name": "twice", "value": "m * 2"}],
    "nunjucksFilters": {"loud": "code.py"},
    "extensions": ["file://code.py:hook"],
}  # fmt: skip
OPEN = {"value", "q", "team", "a", "A", "PLACE", "agree", "loud"}
"""Keys that the user names, and those under which anything may stand."""
WRONG: list[Any] = [3.5, "words", True, [[]], {"k": {"k": []}}]
ALSO = {
    (key, kind)
    for keys, kinds in (
        ("prompts providers tests config", "str dict list"), ("vars", "str dict"), ("rubricPrompt", "dict list"),
        ("provider", "str dict"), ("defaultTest", "str"),
    )
    for key in keys.split()
    for kind in kinds.split()
}  # fmt: skip
"""Other kinds that a key may have; what is wrong within them is not said at the key itself."""


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(key, str) and key not in OPEN:
            yield (*place, key)
        if isinstance(inner, (dict, list)):
            yield from _places(inner, (*place, key))


def _with(place: tuple[Any, ...], value: Any) -> dict[str, Any]:
    document: Any = copy.deepcopy(FULL)
    inner = document
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    return document


def _kind(value: Any) -> str:
    return "number" if type(value) in (int, float) else type(value).__name__


def _at(place: tuple[Any, ...]) -> Any:
    value: Any = FULL
    for step in place:
        value = value[step]
    return value


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    code = "".join(f"def {name}(*args):\n    return args[0]\n" for name in ("ask", "score", "loud"))
    (tmp_path / "code.py").write_text(code + "def hook(*args): ...\n")
    return tmp_path


def test_the_whole_configuration_fits(folder):
    assert load_suite(write(folder, FULL), to_run=False).warnings == []


@pytest.mark.slow("reads the configuration 400 times")
def test_a_wrong_kind_is_a_mistake_at_its_key(folder):
    silent = []
    for place in _places(FULL):
        right = _kind(_at(place))
        for wrong in WRONG:
            kind = _kind(wrong)
            if kind == right or (right, kind) == ("str", "number") or (place[-1], kind) in ALSO:
                continue
            try:
                load_suite(write(folder, _with(place, wrong)), to_run=False)
            except InputError as error:
                if any(place[-1] in problem.key for problem in error.problems):
                    continue
            silent.append((*place, wrong))
    assert silent == []


def test_all_of_them_are_told_at_once(folder):
    document = copy.deepcopy(FULL)
    document["evaluateOptions"] = 3
    document["derivedMetrics"] = 3
    document["commandLineOptions"] = {"filterRange": "5-7", "filterSample": "few"}
    document["providers"][1]["prompts"] = 4
    document["tests"][0] |= {"prompts": 5, "providers": 5, "options": "none", "metadata": ["a"]}
    document["tests"].append({"vars": {"q": "b"}, "provider": {"id": "echo", "delay": "long"}})
    with pytest.raises(InputError) as refused:
        load_suite(write(folder, document), to_run=False, options={"filter_pattern": "no such test"})
    keys = {problem.key for problem in refused.value.problems}
    assert keys >= {
        "evaluateOptions", "derivedMetrics", "commandLineOptions.filterRange", "commandLineOptions.filterSample",
        "providers[1].prompts", "tests[0].prompts", "tests[0].providers", "tests[0].options", "tests[0].metadata",
        "tests[1].provider.delay",
    }  # fmt: skip
    assert "--filter-pattern" in str(refused.value)
