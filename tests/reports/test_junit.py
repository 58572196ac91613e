from __future__ import annotations

from xml.etree import ElementTree

from evalwright.model.summary import GateOutcome
from evalwright.reports.context import CaseLine, ReportContext
from evalwright.reports.junit import JUnit
from evalwright.testing import a_trace, a_verdict
from reports.runs import ERRORED, FAILED, HOSTILE, stored, summary

ALONE = ReportContext()


def suite(*verdicts: object, context: ReportContext = ALONE) -> ElementTree.Element:
    (found,) = ElementTree.fromstring(JUnit().render(stored(*verdicts), summary(), context))
    return found


def cases(*verdicts: object) -> list[ElementTree.Element]:
    return suite(*verdicts).findall("testcase")


def test_each_cell_is_a_test_case_and_is_counted() -> None:
    element = suite(FAILED, ERRORED, a_verdict(case_id="s", status="skip"), a_verdict(case_id="b", status="borderline"))
    kinds = [[child.tag for child in case] for case in element.findall("testcase")]
    assert kinds == [["failure"], ["error"], ["skipped"], ["failure"]]
    counts = {name: element.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "4", "failures": "2", "errors": "1", "skipped": "1"}


def test_in_a_suite_that_has_only_scores_no_cell_fails() -> None:
    low = a_verdict(case_id="c", status="fail", reasons=["same: 0.4", "form: 0.2"])
    text = JUnit().render(stored(low, ERRORED), summary(scored=True), ALONE)
    (element,) = ElementTree.fromstring(text)
    assert (element.get("failures"), element.get("errors")) == ("0", "1")
    case = element.findall("testcase")[0]
    assert [(child.tag, child.text) for child in case] == [("system-out", "same: 0.4\nform: 0.2")]


def test_reasons_are_told() -> None:
    (case,) = cases(a_verdict(case_id="c", status="fail", reasons=["no greeting", "too long"]))
    assert (case[0].get("message"), case[0].text) == ("no greeting", "no greeting\ntoo long")


def test_names_and_reasons_are_data() -> None:
    (case,) = cases(a_verdict(case_id=HOSTILE, status="fail", reasons=[HOSTILE]))
    assert (case.get("name"), len(case)) == (HOSTILE.replace("\x1b", r"\x1b").replace("\u202e", r"\u202e"), 1)


def test_the_time_is_that_of_the_system() -> None:
    run = stored(a_verdict(case_id="c1", variant_name="v1"))
    run.append_trace(a_trace(case_id="c1", variant_name="v1", latency_ms=1500))
    (case,) = ElementTree.fromstring(JUnit().render(run, summary())).iter("testcase")
    assert case.get("time") == "1.500"


def test_a_case_has_its_place_and_the_run_its_address() -> None:
    element = suite(
        FAILED, ERRORED, context=ReportContext(link="https://e.org/b", places={"c3": CaseLine("a.yaml", 7)})
    )
    assert [(case.get("file"), case.get("line")) for case in element.findall("testcase")] == [
        ("a.yaml", "7"),
        (None, None),
    ]
    assert {p.get("name"): p.get("value") for p in element.iter("property")} == {
        "run": summary().run_id,
        "link": "https://e.org/b",
    }


def test_trials_have_names_of_their_own() -> None:
    names = [case.get("name") for case in cases(a_verdict(case_id="c"), a_verdict(case_id="c", trial=1))]
    assert names == ["c", "c [trial 2]"]


def test_a_cell_with_several_verdicts_has_the_newest_one() -> None:
    attempts = [(2, "fail"), (1, "error"), (2, "skip")]
    records = [a_verdict(case_id="c", status=status, attempt=attempt) for attempt, status in attempts]
    (case, other) = cases(records[0], a_verdict(case_id="d"), *records[1:])
    assert (other.get("name"), [child.tag for child in other]) == ("c", ["skipped"])
    assert case.get("name") == "d"


# Of each element, what must be there, what else may be, and what is in it: as in the schemas of Jenkins (xunit plugin,
# `junit-10.xsd`) and of Ant, which ask for the `type` of failures and errors; file and line are those of pytest.
SCHEMA = {
    "testsuite": (
        {"name", "tests", "failures", "errors", "time", "timestamp"},
        {"skipped"},
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, set(), set()),
    "testcase": (
        {"name", "classname", "time"},
        {"file", "line"},
        {"failure", "error", "skipped", "system-out", "system-err"},
    ),
    "failure": ({"message", "type"}, set(), set()),
    "error": ({"message", "type"}, set(), set()),
    "skipped": ({"message"}, {"type"}, set()),
    "system-out": (set(), set(), set()),
    "system-err": (set(), set(), set()),
}


def test_everything_is_where_the_schemas_expect_it() -> None:
    verdicts = [FAILED, ERRORED, HOSTILE, a_verdict(case_id="s", status="skip")]
    whole = summary(gate=GateOutcome(False, [], "half of it"), cells_missing=3, status="partial", warnings=["w"])
    context = ReportContext(link="https://reports.example/1", places={FAILED.case_key: CaseLine("cases.yaml", 14)})
    root = ElementTree.fromstring(JUnit().render(stored(*verdicts), whole, context))
    assert (root.tag, [suite.tag for suite in root]) == ("testsuites", ["testsuite"])
    elements = list(root[0].iter())
    assert {element.tag for element in elements} >= SCHEMA.keys() - {"system-out"}
    for element in elements:
        needed, further, inner = SCHEMA[element.tag]
        assert needed <= set(element.keys()) <= needed | further, ElementTree.tostring(element)
        assert {child.tag for child in element} <= inner
    assert root[0][0].tag == "properties"  # Ant's has it before all test cases
    assert int(root[0].get("tests", "")) == len(root[0].findall("testcase"))
