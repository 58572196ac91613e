import pytest

from viewer.runs import made_run, site


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A stored run that has something of everything."""
    return made_run(tmp_path_factory.mktemp("viewed"))


@pytest.fixture(scope="module")
def client(run):
    with site(run.parent) as client:
        yield client
