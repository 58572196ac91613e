"""The JSON Schemas of other formats' files accept what their readers do, and refuse nearly all that these refuse."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

import jsonschema
import pytest

from acceptance.mistaken import mistakes
from evalwright.cli.schema import text_of
from evalwright.cli.validate import loaded_to_check
from evalwright.errors import InputError
from evalwright.files import yaml
from evalwright.formats.loading import fitting
from evalwright.formats.northstar.plans import configured, read_configuration
from evalwright.session.imports import nothing_imported
from formats.mutations import as_json, mutated

FILES = Path(__file__).with_name("authored")
"""A file of each kind that uses most of what its format has, with the files that it names."""


class Kind(NamedTuple):
    schema: str
    format: str
    file: str
    suite: str = ""
    """The suite beside it that names it, if it is none itself."""
    missed: float = 0.1
    """The share of mistakes by keys or types that the schema may let pass."""


KINDS = [
    Kind("agentv", "agentv", "agentv/EVAL.yaml"),
    Kind("agentv-case", "agentv", "agentv/lines.jsonl"),
    Kind("agentv-sidecar", "agentv", "agentv/lines.yaml", "lines.jsonl"),
    Kind("agentv-cases", "agentv", "agentv/cases.yaml", "files.yaml"),
    Kind("agentv-folder-case", "agentv", "agentv/folders/open/case.yaml", "folders.yaml"),
    Kind("agentv-workspace", "agentv", "agentv/workspace.yaml", "files.yaml"),
    Kind("agentv-assertions", "agentv", "agentv/.agentv/templates/polite.yaml", "files.yaml"),
    Kind("agentv-targets", "agentv", "agentv/targets.yaml"),
    Kind("agentv-config", "agentv", "agentv/.agentv/config.yaml"),
    Kind("letta", "letta", "letta/suite.yaml"),
    Kind("letta-sample", "letta", "letta/samples.jsonl", "suite.yaml"),
    Kind("northstar", "northstar", "northstar/cases.json"),
    Kind("northstar-case", "northstar", "northstar/cases.jsonl"),
    Kind("northstar-graders", "graders", "northstar/graders.json"),
    Kind("pixie", "pixie", "pixie/dataset.json"),
    Kind("promptfoo", "promptfoo", "promptfoo/promptfooconfig.yaml"),
    Kind("promptfoo-tests", "promptfoo", "promptfoo/tests.yaml", "files.yaml"),
    Kind("promptfoo-test", "promptfoo", "promptfoo/tests.jsonl", "files.yaml"),
    Kind("promptfoo-test", "promptfoo", "promptfoo/default.yaml", "files.yaml"),
    Kind("promptfoo-scenarios", "promptfoo", "promptfoo/scenarios.yaml", "files.yaml"),
    Kind("promptfoo-providers", "promptfoo", "promptfoo/providers.yaml", "files.yaml"),
    Kind("skills", "skills", "skills/evals/evals.json"),
]
ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(?:yaml|json)[^\n]*file=(\S+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SUITES = {name: name for name in ("agentv", "letta", "northstar", "pixie", "promptfoo", "skills")}
"""The schema of each format's suites."""
TABLES = [
    ("agentv", "agentv", "EVAL.yaml"),
    ("letta", "letta", "suite.yaml"),
    ("northstar", "northstar", "support.json"),
    ("pixie", "pixie", "qa.json"),
    ("promptfoo", "promptfoo", "promptfooconfig.yaml"),
    ("skills", "skills", "pdf-tools/evals/evals.json"),
]
BEYOND = re.compile(
    "there is no |no file|duplicate|comes more|found more|leads out|not set|cannot be read|unknown type|no grader"
    "|target|isolates or|unknown provider|Invalid suite"
)
"""What no schema can see: other files, other keys, names that the file gives itself."""


def checker(name: str) -> jsonschema.Draft7Validator:
    return jsonschema.Draft7Validator(json.loads(text_of(name)))


def problems_of(path: Path, format: str) -> list[str]:
    """What the format's reader says of a file, with all its cases."""
    try:
        if format == "graders":
            configured(read_configuration(path), str(path))
            return []
        with nothing_imported():
            suite, _ = loaded_to_check(path, format)
        for _ in suite.cases:
            pass
    except InputError as error:
        return [problem.message for problem in error.problems if not problem.absent] or [error.headline]
    return [problem.message for problem in getattr(suite.cases, "problems", ())]


def copied(kind: Kind, folder: Path) -> Path:
    """The file of a kind among copies of those that it names."""
    top = FILES / kind.file.partition("/")[0]
    for file in top.rglob("*"):
        if file.is_file():
            place = folder / file.relative_to(top)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(file.read_bytes())
    return folder / kind.file.partition("/")[2]


def compared(kind: Kind, folder: Path, most: int) -> tuple[int, list[str], list[str]]:
    """Of at most so many changes: how many are mistakes, which of them the schema takes, and what it alone refuses."""
    path = copied(kind, folder)
    schema, document = checker(kind.schema), yaml.load(path).value
    suite = folder / kind.suite if kind.suite else path
    assert [error.message for error in schema.iter_errors(as_json(document))] == []
    assert problems_of(suite, kind.format) == []
    wrong, missed, too_strict = 0, [], []
    changes = list(mutated(document))
    for name, changed in changes[3 :: len(changes) // most + 1]:
        path.write_text(json.dumps(changed))
        accepted, found = schema.is_valid(as_json(changed)), problems_of(suite, kind.format)
        if not found and not accepted:
            too_strict.append(f"{name}: {next(schema.iter_errors(as_json(changed))).message[:300]}")
        elif found and not any(BEYOND.search(one) for one in found):
            wrong += 1
            if accepted:
                missed.append(f"{name}: {found[0]}")
    return wrong, missed, too_strict


@pytest.mark.slow("reads hundreds of files")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.file)
def test_what_is_wrong_by_keys_or_types_is_refused_and_nothing_else(kind: Kind, tmp_path: Path) -> None:
    wrong, missed, too_strict = compared(kind, tmp_path, 200)
    assert too_strict == []
    assert wrong > 5
    assert len(missed) <= wrong * kind.missed, missed


@pytest.mark.slow("thousands of mistakes")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.suite], ids=lambda kind: kind.schema)
def test_a_sample_of_mistakes_is_refused(kind: Kind, tmp_path: Path) -> None:
    _, _, too_strict = compared(kind, tmp_path, 4)
    assert too_strict == []


def test_every_example_of_the_docs_passes(tmp_path: Path) -> None:
    seen = set()
    for page in sorted((ROOT / "docs").glob("*.md")):
        for name, text in FENCE.findall(page.read_text()):
            path = tmp_path / Path(name).name
            path.write_text(text)
            is_suite = path.suffix != ".jsonl" and path.name != "targets.yaml"
            for suite_format in [one for one in fitting(path) if one.name in SUITES] if is_suite else ():
                seen.add(suite_format.name)
                errors = checker(SUITES[suite_format.name]).iter_errors(as_json(yaml.load(path).value))
                assert [error.message for error in errors] == [], f"{page.name}: {name}"
    assert seen >= {"agentv", "letta", "northstar"}


@pytest.mark.slow("reads two hundred suites")
@pytest.mark.parametrize(("table", "schema", "file"), TABLES, ids=lambda one: one)
def test_typical_mistakes(table: str, schema: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the mistakes that users make the schema refuses none of which the reader says nothing."""
    check, refused = checker(schema), 0
    for number, mistake in enumerate(one for one in mistakes() if one.table == table):
        folder = tmp_path / str(number)
        mistake.write(folder)
        path = folder / file
        if not path.is_file():
            continue
        try:
            value = as_json(yaml.load(path, "yaml12").value)
        except InputError:
            continue
        monkeypatch.chdir(folder)
        accepted, found = check.is_valid(value), problems_of(path, table)
        refused += not accepted
        assert accepted or found, mistake.name
    assert refused > 2
