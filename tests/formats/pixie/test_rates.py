"""Questions to models are asked no faster than is configured."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evalwright.pixie as pixie
from evalwright.formats.pixie.surface.config import RateLimitConfig, get_config
from evalwright.formats.pixie.surface.rates import RateLimiter

WIDE = RateLimitConfig(1e9, 1e9, 1e9, 1e9)


def moments(limits, *questions):
    limiter = RateLimiter(limits)
    return [limiter.admit(now, tokens) for now, tokens in questions]


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (replace(WIDE, rps=2), [0, 0, 1, 1, 2]),
        (replace(WIDE, rpm=2), [0, 0, 60, 60, 120]),
        (replace(WIDE, tps=25), [0, 0, 1, 1, 2]),
        (replace(WIDE, tpm=5), [0, 60, 120, 180, 240]),
        (WIDE, [0, 0, 0, 0, 0]),
    ],
)
def test_each_limit_holds_questions_back(limits, expected):
    assert moments(limits, *[(0.0, 10)] * 5) == expected


arrivals = st.lists(st.tuples(st.integers(0, 40).map(lambda eighths: eighths / 8), st.integers(0, 30)), max_size=30)


@given(arrivals, st.integers(1, 5), st.integers(1, 40))
def test_no_window_holds_more_than_is_allowed(given_, requests, tokens):
    asked = sorted(given_)
    admitted = moments(replace(WIDE, rps=requests, tps=tokens), *asked)
    assert all(moment >= now for moment, (now, _) in zip(admitted, asked, strict=True))
    for last in admitted:
        inside = [size for moment, (_, size) in zip(admitted, asked, strict=True) if last - 1 < moment <= last]
        assert len(inside) <= requests
        assert sum(inside) <= tokens or len([size for size in inside if size]) == 1


def test_an_evaluator_without_a_model_is_never_held_back():
    pixie.configure_rate_limits(RateLimitConfig(rps=1, rpm=1, tps=1, tpm=1))
    try:
        item = pixie.Evaluable(eval_input="q", eval_output="a" * 100, expectation="a" * 100)
        said = [asyncio.run(pixie.evaluate(pixie.ExactMatch(), item)).score for _ in range(3)]
    finally:
        pixie.configure_rate_limits(None)
    assert said == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("text", ["x", "0", "-1", "nan", "inf"])
def test_a_limit_that_is_no_number_above_0_is_named(monkeypatch, text):
    monkeypatch.setenv("PIXIE_RATE_LIMIT_TPS", text)
    with pytest.raises(ValueError, match="PIXIE_RATE_LIMIT_TPS"):
        get_config()
