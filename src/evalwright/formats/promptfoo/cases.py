"""The tests of a configuration, wherever they are written, as cases."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalwright.errors import Problem
from evalwright.files.jsonl import exact
from evalwright.files.key_paths import as_written
from evalwright.files.plain import mapping_or_empty
from evalwright.formats.promptfoo.assertions import Assertions
from evalwright.formats.promptfoo.doubts import doubt_threshold, doubt_variables
from evalwright.formats.promptfoo.expansion import AuthoredTest, TestExpansion
from evalwright.formats.promptfoo.numbering import AuthoredCase
from evalwright.formats.promptfoo.origin import LineDocument, Origin
from evalwright.formats.promptfoo.providers import PASSED_ON, check_files_of_request
from evalwright.formats.promptfoo.rows import tests_in
from evalwright.formats.promptfoo.scripts import Generated, generated_tests
from evalwright.formats.promptfoo.shapes import (
    CONFIG,
    FACTUALITY,
    GENERATOR,
    OPTIONS,
    SCENARIO,
    TEST,
    warn_of_others,
    what_fits,
)
from evalwright.formats.promptfoo.sources import SCRIPTS, Sources, in_file, split_function
from evalwright.formats.promptfoo.tables import rows_of, rows_of_workbook
from evalwright.formats.promptfoo.values import as_javascript, compact_json
from evalwright.formats.shared.findings import Findings

__all__ = ["Tests"]

_REMOTE = re.compile(r"^(https?|huggingface|az|s3|gs|sharepoint)://")
_OF_TESTS = (".yaml", ".yml", ".json", ".jsonl", ".csv", ".xlsx")
_SHEET = re.compile(r"\.xlsx#")
"""Where the name of a workbook is followed by that of a sheet."""
_SAYS = ("assert", "vars", "options", "metadata", "provider", "providerOutput", "threshold")
"""Keys of which a test has at least one; promptfoo rejects a test without them, too."""


class Tests:
    """Reads `tests`, `scenarios` and `defaultTest`, whose variables the `given` ones replace."""

    def __init__(
        self,
        raw: Mapping[str, Any],
        sources: Sources,
        assertions: Assertions,
        origin: Origin,
        given: Mapping[str, str],
    ) -> None:
        self._raw, self._sources, self._assertions, self._origin = raw, sources, assertions, origin
        self._default, self._of_default = self._defaults()
        if given:
            self._default = {**self._default, "vars": {**mapping_or_empty(self._default.get("vars")), **given}}
        doubt_threshold(self._default.get("threshold"), self._of_default)
        self._listed: list[AuthoredTest] | None = None
        """What `tests` lists, if a hook has been shown it."""
        self._of_scenarios = origin.at("scenarios")
        self.skipped: list[Problem] = []
        """Code that makes tests and was not executed."""

    def shown(self) -> dict[str, Any]:
        """The tests in the form in which promptfoo shows them to `beforeAll`."""
        raw = self._raw.get("tests")
        self._listed = [] if raw is None else [*self._tests(raw, self._origin.at("tests"))]
        return {
            "tests": [test.raw for test in self._listed],
            "scenarios": self._raw.get("scenarios") or [],
            "defaultTest": {"assert": [], **self._default},
        }

    def take(self, changed: Mapping[str, Any], origin: Origin) -> None:
        """Take over what hooks have changed; a test that they left as it was keeps its place in its file."""
        if "tests" in changed:
            self._listed = [*self._returned_tests(changed["tests"], origin.at("tests"))]
        if "scenarios" in changed:
            self._raw = {**self._raw, **what_fits({"scenarios": changed["scenarios"]}, CONFIG, origin)}
            self._of_scenarios = origin.at("scenarios")
        if "defaultTest" in changed:
            self._default, self._of_default = self._checked_default(changed["defaultTest"], origin.at("defaultTest"))

    def _returned_tests(self, tests: Any, origin: Origin) -> Iterator[AuthoredTest]:
        if not isinstance(tests, list):
            origin.report(f"expected a list of tests, found {as_written(tests)}")
            return
        known = {compact_json(test.raw): test for test in self._listed or ()}
        for i, test in enumerate(tests):
            kept = known.get(compact_json(test))
            yield from self._test(test, origin.at(i)) if kept is None else (kept,)

    def cases(self) -> list[AuthoredCase]:
        """All cases, numbered in order: those in `tests`, then those in `scenarios`."""
        cases: list[AuthoredCase] = []
        expansion = TestExpansion(AuthoredTest(self._default, self._of_default), self._sources, self._assertions)
        for group, (listed, number, test) in enumerate(self._all_tests()):
            cases += (AuthoredCase(case, listed, number, group) for case in expansion.cases(test, len(cases)))
        if not cases and not self._raw.get("tests") and not self._raw.get("scenarios"):
            cases += (AuthoredCase(case, 0, 0, 0) for case in expansion.cases(AuthoredTest({}, self._origin), 0))
        return cases

    def _all_tests(self) -> Iterator[tuple[int, int, AuthoredTest]]:
        """Each test, preceded by the number of its list and its number in the list."""
        raw = self._raw.get("tests")
        if raw is not None or self._listed:
            rows = isinstance(raw, str) and raw.endswith((".json", ".jsonl")) and "*" not in raw
            tests = self._tests(raw, self._origin.at("tests")) if self._listed is None else self._listed
            for number, test in enumerate(tests):
                if not any(key in test.raw for key in _SAYS):
                    keys = ", ".join(map(str, test.raw)) or "nothing"
                    test.origin.report(f"a test needs at least one of {', '.join(_SAYS)}; found {keys:.60}")
                # promptfoo adds descriptions to the tests of such a file if `tests` names nothing else
                described = {"description": f"Row #{number + 1}", **test.raw} if rows else test.raw
                yield 0, number, test._replace(raw=described)
        self._talks = itertools.count()
        listed = itertools.count(1)
        for i, raw in enumerate(self._raw.get("scenarios") or ()):
            for scenario in self._scenario(raw, self._of_scenarios.at(i)):
                place = next(listed)
                for number, test in scenario:
                    yield place, number, test

    def _defaults(self) -> tuple[dict[str, Any], Origin]:
        raw, origin = self._raw.get("defaultTest"), self._origin.at("defaultTest")
        if in_file(raw):
            path = self._sources.path(str(raw), origin)
            document = None if path is None else self._sources.document(path, origin)
            if path is None or document is None:
                return {}, origin
            raw, origin = as_javascript(document.value), Origin(Findings(self._sources.shown(path), document))
            self._borrow(origin)
        return ({}, origin) if raw is None else self._checked_default(raw, origin)

    def _checked_default(self, raw: Any, origin: Origin) -> tuple[dict[str, Any], Origin]:
        if not isinstance(raw, dict):
            origin.report(f"defaultTest: expected a mapping, found {as_written(raw)}")
            return {}, origin
        if isinstance(raw.get("vars"), (str, list)):
            origin.at("vars").warn("nothing reads files of variables in defaultTest: write the variables here")
        return self._checked_test(raw, origin), origin

    def _borrow(self, origin: Origin) -> None:
        """Report mistakes in another file together with the rest."""
        origin.findings.join(self._origin.findings)

    def _scenario(self, raw: Any, origin: Origin) -> Iterator[Iterator[tuple[int, AuthoredTest]]]:
        """The numbered tests of a scenario, or of each scenario in a file."""
        if in_file(raw):
            for path in self._sources.paths(raw, origin):
                if (document := self._sources.document(path, origin)) is not None:
                    inner = Origin(Findings(self._sources.shown(path), document))
                    self._borrow(inner)
                    listed = document.value if isinstance(document.value, list) else [document.value]
                    for test in as_javascript(listed):
                        yield from self._scenario(test, inner)
            return
        if not isinstance(raw, dict):
            origin.report(f"expected a mapping with config and tests, found {as_written(raw)}")
            return
        warn_of_others(raw, SCENARIO, origin)
        yield self._with_every_config(what_fits(raw, SCENARIO, origin), origin)

    def _with_every_config(self, raw: dict[str, Any], origin: Origin) -> Iterator[tuple[int, AuthoredTest]]:
        tests = list(self._tests(raw.get("tests", []), origin.at("tests")))
        configs = list(self._tests(raw.get("config", [{}]), origin.at("config")))
        for part, entries in (("tests", tests), ("config", configs)):
            if not entries and not self.skipped:
                origin.warn(f"a scenario without {part} has no tests to run")
        talks = [f"__scenario_{next(self._talks)}__" for _ in configs]
        for (config, talk), (number, test) in itertools.product(zip(configs, talks, strict=True), enumerate(tests)):
            merged = {**config.raw, **test.raw}
            for key in ("vars", "options", "metadata"):
                if key in config.raw or key in test.raw:
                    merged[key] = {**mapping_or_empty(config.raw.get(key)), **mapping_or_empty(test.raw.get(key))}
            merged["assert"] = [*_listed(config.raw.get("assert")), *_listed(test.raw.get("assert"))]
            yield number, AuthoredTest(merged, test.origin, talk)

    def _tests(self, raw: Any, origin: Origin) -> Iterator[AuthoredTest]:
        if not isinstance(raw, list):
            yield from self._test(raw, origin)
            return
        for i, test in enumerate(raw):
            yield from self._test(test, origin.at(i))

    def _test(self, raw: Any, origin: Origin) -> Iterator[AuthoredTest]:
        if isinstance(raw, str):
            yield from self._tests_of_file(raw, None, origin)
        elif isinstance(raw, dict) and "path" in raw and "vars" not in raw:
            warn_of_others(raw, GENERATOR, origin)
            if isinstance(named := what_fits(raw, GENERATOR, origin).get("path"), str):
                yield from self._tests_of_file(named, raw.get("config"), origin)
        elif isinstance(raw, dict):
            test = self._with_vars(self._checked_test(raw, origin), origin)
            doubt_variables(mapping_or_empty(test.get("vars")), origin.at("vars"))
            yield AuthoredTest(test, origin)
        else:
            origin.report(f"expected a test or the name of a file, found {as_written(raw)}")

    def _checked_test(self, raw: dict[str, Any], origin: Origin) -> dict[str, Any]:
        """A test without values of the wrong type, with the files of its transforms checked."""
        warn_of_others(raw, TEST, origin)
        raw = what_fits(raw, TEST, origin)
        if "options" not in raw:
            return raw
        inner = origin.at("options")
        warn_of_others(raw["options"], (*OPTIONS, *PASSED_ON), inner)
        options = what_fits(raw["options"], OPTIONS, inner)
        warn_of_others(options.get("factuality") or {}, FACTUALITY, inner.at("factuality"))
        for key in ("transform", "postprocess", "transformVars"):
            self._sources.code(options.get(key), inner.at(key))
        check_files_of_request(options, self._sources, inner)
        return raw if options is raw["options"] else {**raw, "options": options}

    def _tests_of_file(self, named: str, config: Any, origin: Origin) -> Iterator[AuthoredTest]:
        if _REMOTE.match(named):
            origin.report(f"{named!r} is not in a file: download it and name the file")
            return
        path, function = split_function(named)
        path, _, sheet = path.partition("#") if _SHEET.search(path) else (path, "", "")
        for file in self._sources.paths(path, origin):
            if file.suffix in SCRIPTS:
                yield from self._generated_tests(file, function, config, origin)
            elif file.suffix == ".xlsx":
                yield from self._tests_in_workbook(file, sheet or None, origin)
            else:
                yield from self._tests_in_file(file, origin)

    def _generated_tests(self, path: Path, function: str, config: Any, origin: Origin) -> Iterator[AuthoredTest]:
        generated = generated_tests(path, function, config, self._sources.folder)
        if isinstance(generated, Generated):
            for test in as_javascript(generated.tests):
                yield from self._test(test, origin)
        elif generated is None:
            self.skipped.append(origin.problem(f"the tests that {path.name} makes are missing: it is not executed"))
            origin.warn(f"{path.name} was not executed: it makes tests, which are not counted")
        else:
            origin.report(generated)

    def _tests_in_file(self, path: Path, origin: Origin) -> Iterator[AuthoredTest]:
        shown = self._sources.shown(path)
        if path.suffix == ".csv":
            header, rows = rows_of(self._sources.text(path, origin), path.name, origin)
            for number, test in tests_in(header, rows, path.name, origin):
                yield AuthoredTest(test, self._at_line(test, number, shown))
        elif path.suffix == ".jsonl":
            for number, line in enumerate(self._sources.lines(path, origin), 1):
                if line.strip():
                    yield from self._line(line, number, shown, origin)
        elif path.suffix in _OF_TESTS:
            document = self._sources.document(path, origin)
            if document is not None:
                inner = Origin(Findings(shown, document))
                self._borrow(inner)
                yield from self._tests(as_javascript(document.value), inner)
        else:
            origin.report(f"{path.name!r} is not a file of tests: expected one of {', '.join((*_OF_TESTS, *SCRIPTS))}")

    def _tests_in_workbook(self, path: Path, sheet: str | None, origin: Origin) -> Iterator[AuthoredTest]:
        if (content := self._sources.content(path, origin)) is not None:
            header, rows = rows_of_workbook(content, path.name, sheet, origin)
            for number, test in tests_in(header, rows, path.name, origin):
                yield AuthoredTest(test, self._at_line(test, number, self._sources.shown(path)))

    def _line(self, line: str, number: int, path: Path, origin: Origin) -> Iterator[AuthoredTest]:
        try:
            test = as_javascript(exact(line))
        except ValueError as error:
            origin.report(f"{path.name}:{number}: broken JSON: {error}")
            return
        yield from self._test(test, self._at_line(test, number, path))

    def _at_line(self, test: Any, number: int, path: Path) -> Origin:
        inner = Origin(Findings(path, LineDocument(path.name, test, number)))
        self._borrow(inner)
        return inner

    def _with_vars(self, raw: dict[str, Any], origin: Origin) -> dict[str, Any]:
        """The test with the variables from the files that it names."""
        own = raw.get("vars")
        if isinstance(own, str) and own.startswith("file://"):
            origin.at("vars").warn(f"vars: {own!r} is not read, as in promptfoo: write {own[7:]!r}")
            return {**raw, "vars": {}}
        if not isinstance(own, (str, list)):
            return raw
        variables: dict[str, Any] = {}
        for named in own if isinstance(own, list) else [own]:
            for path in self._sources.paths(str(named), origin.at("vars")):
                document = self._sources.document(path, origin)
                variables |= mapping_or_empty(None if document is None else as_javascript(document.value))
        return {**raw, "vars": variables}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
