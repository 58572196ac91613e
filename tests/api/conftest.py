"""A stored run, for the tests of what it shows and of judging it again."""

import pytest

import evalwright as ew
from api import agents
from api.shouting import CASES, shouts


@pytest.fixture
def run(tmp_path):
    return ew.evaluate(CASES, shouts, evaluators=agents.loud, out=tmp_path, name="shouting")
