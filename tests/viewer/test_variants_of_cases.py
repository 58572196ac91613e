"""A case that several variants have: which of its cells an address leads to, and how one gets to the others."""

from __future__ import annotations

import re

import pytest

from viewer.reading import found, page, seen
from viewer.runs import made_run, site


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return made_run(tmp_path_factory.mktemp("variants"), variants=("careful", "hasty"), lost=1)


def test_the_address_of_a_case_that_several_variants_have_leads_to_all_its_cells(run):
    with site(run.parent) as client:
        address = client.get(f"/runs/{run.name}/cells?case=case-0").headers["location"]
        text = page(client, address)
        of_trial = page(client, client.get(f"/runs/{run.name}/cells?case=case-0&trial=1").headers["location"])
    assert found(text) == "4 of 28 cells"
    assert found(of_trial) == "2 of 28 cells"
    assert re.findall(r'data-label="Variant">(\w+)', text) == ["careful", "careful", "hasty", "hasty"]


def test_a_cell_leads_to_the_other_variants_of_its_case(run):
    with site(run.parent) as client:
        cell = client.get(f"/runs/{run.name}/cells?case=case-0&variant=careful&trial=1").headers["location"]
        navigation = re.search(r'<nav aria-label="Other variants".*?</nav>', client.get(cell).text, re.DOTALL)[0]
        other = re.search(r'href="([^"]*)">hasty<', navigation)[1]
        text = client.get(other).text
    assert seen(navigation) == "Other variants hasty ✗ Fail"
    assert "hasty trial 2" in seen(text)


def test_of_several_variants_the_list_of_runs_has_the_highest_rate_without_an_interval(run):
    """Its own interval is not that of a rate which was chosen for being the highest."""
    with site(run.parent) as client:
        [cell] = re.findall(r'<td data-label="Pass rate".*?</td>', page(client, "/"), re.DOTALL)
    assert re.fullmatch(r"[\d.]+% highest of 2: careful", seen(cell))


def test_a_long_name_of_a_variant_fills_no_page(tmp_path):
    name = "v" * 3000
    run = made_run(tmp_path, variants=("short", name), trials=1, count=2)
    with site(run.parent) as client:
        cell = client.get(f"/runs/{run.name}/cells", params={"case": "case-0", "variant": name})
        compared = f"/compare?a={run.name}&b={run.name}&va=short&vb={name}"
        for path in ("/", f"/runs/{run.name}", cell.headers["location"], compared):
            text = seen(page(client, path))
            assert "v" * 59 + "…" in text or path == "/"  # its highest rate is that of the other
            assert "v" * 200 not in text
