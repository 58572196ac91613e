"""Streamed answers: events, their end, their counts, and streams that break off."""

import asyncio
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.errors import TargetError
from evalwright.targets.http.protocols import PROTOCOLS
from evalwright.targets.http.streams import FORMATS, EventReader, event_paths
from targets.loopback import ask, chunked, reply

FIELDS = {"stream_event_field": "$.t", "stream_done_field": "$.done", "stream_tool_call_field": "$.call"}


def streamed(*pieces, form="sse", end=True, **config):
    pieces = [piece.encode() if isinstance(piece, str) else piece for piece in pieces]
    return ask(chunked(*pieces, end=end), response_mapping={}, stream=True, stream_format=form, **{**FIELDS, **config})


def facts(answer):
    """Answer, chunks, tokens, whether it was completed."""
    metrics = answer.metrics
    return (answer.output.final_answer, metrics.stream_chunks, metrics.token_output, metrics.stream_completed)


def sse(*events):
    return [f"data: {e if isinstance(e, str) else json.dumps(e)}\n\n" for e in events]


@pytest.mark.parametrize("done", [True, "stop", 0, 1])
def test_nothing_is_read_after_the_event_that_says_done(done):
    answer = streamed(*sse({"t": "a"}, {"t": "b", "done": done}, {"t": "never"}))
    assert facts(answer) == ("ab", 2, 2, True)


@pytest.mark.parametrize("done", [False, None, ""])
def test_these_values_do_not_say_done(done):
    assert facts(streamed(*sse({"t": "a", "done": done}, {"t": "b"}))) == ("ab", 2, 2, False)


def test_the_done_marker_counts_as_a_chunk():
    assert facts(streamed(*sse({"t": "a"}, "[DONE]", {"t": "never"}))) == ("a", 2, 1, True)


@pytest.mark.parametrize(
    ("form", "pieces"),
    [
        ("sse", ['\ufeffdata: {"t": "a"}\n\n', 'data: {"t": "b"}\n\n']),
        ("json_lines", ['\ufeff{"t": "a"}\n', '{"t": "b"}\n']),
        ("raw_chunks", ["\ufeffa", "b"]),
    ],
)
def test_a_byte_order_mark_is_no_part_of_the_first_event(form, pieces):
    whole = "".join(pieces).encode()
    for cut in range(1, len(whole)):
        assert streamed(whole[:cut], whole[cut:], form=form).output.final_answer == "ab"


def test_a_stream_without_the_event_that_says_done_lacks_its_end():
    assert streamed(*sse({"t": "a"}, {"done": True})).extra == {}
    missing = "stream_done_field $.done finds nothing in the 2 events of the stream"
    assert streamed(*sse({"t": "a"}, {"t": "b"})).extra == {"stream_interrupted": missing}
    assert streamed(*sse({"t": "a"}), stream_done_field=None).extra == {}


@pytest.mark.parametrize(
    ("form", "pieces"),
    [
        ("sse", [*sse({"t": "a"}), 'data: {"t": "b']),
        ("json_lines", ['{"t": "a"}\n', '{"t": "b']),
        ("raw_chunks", ["a", "é".encode()[:1]]),
    ],
)
def test_a_stream_that_ends_inside_an_event_lacks_its_end(form, pieces):
    answer = streamed(*pieces, form=form, stream_done_field=None)
    assert (answer.output.final_answer, answer.extra) == (
        "a",
        {"stream_interrupted": "the stream ends inside an event"},
    )


@pytest.mark.parametrize("after", [(), ("[DONE]",), ({"done": True},)])
@pytest.mark.parametrize("form", ["sse", "json_lines"])
def test_a_stream_of_nothing_but_an_error_is_one(form, after):
    events = [event for event in ({"error": {"message": "too busy"}}, *after) if form == "sse" or event != "[DONE]"]
    pieces = sse(*events) if form == "sse" else [json.dumps(event) + "\n" for event in events]
    with pytest.raises(TargetError, match="too busy"):
        streamed(*pieces, form=form)


@pytest.mark.parametrize(
    "error",
    [
        'data: {"error": {"message": "too busy"}}\n\n',
        'event: error\ndata: {"status_code": 500, "message": "too busy"}\n\n',
        "event: error\ndata: too busy\n\n",
    ],
)
def test_text_before_an_error_is_kept_and_so_is_the_error(error):
    answer = streamed(*sse({"t": "a"}), error)
    assert facts(answer) == ("a", 2, 1, False)
    assert "too busy" in answer.extra["stream_interrupted"]


def test_an_event_that_is_named_error_is_no_text():
    with pytest.raises(TargetError, match="too busy"):
        streamed("event: error\ndata: too busy\n\n")
    assert facts(streamed("event: error\n\n", *sse({"t": "a"}, "[DONE]")))[0] == "a"


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (("data: a", "data: b", ""), "a\nb"),
        (("data: a", "data:", "data: b", ""), "a\n\nb"),
        (("data: a", "", "data:  ", "", "data: b", ""), "a b"),
        (('data: {"t":', 'data: "a"}', ""), "a"),
        (('data: {"t": "a"}', 'data: {"t": "b"}', "data: [DONE]"), "ab"),
        (("data: a", "data: [DONE]"), "a"),
        (("data: a", "data: b"), "a\nb"),
    ],
)
def test_several_lines_of_data_are_one_event(lines, text):
    assert facts(streamed("".join(f"{line}\n" for line in lines)))[0] == text


def test_comments_names_and_ids_are_no_events():
    assert facts(streamed(": ping\n\nevent: m\nid: 1\nretry: 5\n", *sse({"t": "a"}))) == ("a", 1, 1, False)


def test_data_that_is_not_json_is_text():
    assert facts(streamed(*sse("hello", " world", "42", "[DONE]"))) == ("hello world42", 4, 3, True)


def test_an_event_without_text_is_a_chunk_and_no_token():
    assert facts(streamed(*sse({"x": 1}, {"t": ""}, {"t": None}))) == ("", 3, None, False)


def test_a_stream_without_any_text_is_an_error_that_names_the_path():
    with pytest.raises(TargetError, match=r"no answer: stream_event_field \$\.t finds nothing in the 2 events"):
        streamed(*sse({"x": 1}, {"t": None}))
    assert facts(streamed(*sse({"x": 1}), evalh_rules=True)) == (None, 1, None, False)
    assert facts(streamed(*sse({"x": 1}), allow_missing=["final_answer"])) == (None, 1, None, False)


def test_lines_of_json():
    pieces = ['{"t": "a"}\n\n', '{"t"', ': "b"}\r\n{"done": 1}\n{"t": "never"}\n']
    assert facts(streamed(*pieces, form="json_lines")) == ("ab", 3, 2, True)


def test_a_line_that_is_not_json_is_an_error():
    with pytest.raises(TargetError, match="JSON"):
        streamed('{"t": "a"}\n', "{bad\n", form="json_lines")


def test_raw_chunks_are_the_answer_even_when_a_character_is_split():
    assert facts(streamed(b"a\xc3", b"\xa4", b"b", form="raw_chunks")) == ("aäb", 3, 3, False)


def test_text_that_is_not_utf8_is_an_error():
    for form in FORMATS:
        paths = dict.fromkeys(FIELDS) if form in PROTOCOLS else {}
        with pytest.raises(TargetError, match="UTF-8"):
            streamed(b"data: \xff\xfe\n\n", b"\n", form=form, **paths)


def test_times_follow_the_order_of_the_stream():
    metrics = streamed(*sse({"t": "a"}, {"t": "b"}, "[DONE]")).metrics
    assert 0 <= metrics.latency_first_token_ms <= metrics.latency_last_token_ms
    assert metrics.tokens_per_second > 0


def test_there_are_no_times_without_tokens():
    metrics = streamed(*sse({"x": 1}), allow_missing=["final_answer"]).metrics
    times = (metrics.latency_first_token_ms, metrics.latency_last_token_ms, metrics.tokens_per_second)
    assert times == (None, None, None)


def test_tool_calls_come_with_events():
    call = {"name": "f", "arguments": '{"a": 1}'}
    answer = streamed(*sse({"t": "a", "call": call}, {"call": [{"name": "g", "input": {}}]}))
    assert [(c.name, c.arguments) for c in answer.tool_calls] == [("f", {"a": 1}), ("g", {})]


def test_tool_calls_in_fragments_are_put_together_by_their_index():
    def fragment(index, arguments, **more):
        return {"call": [{"index": index, **more, "function": {"arguments": arguments, **more}}]}

    events = [
        fragment(0, "", name="f"), fragment(1, '{"b"', name="g"), fragment(0, '{"a": '), fragment(0, "1}"),
        fragment(1, ": 2}"),
    ]  # fmt: skip
    answer = streamed(*sse(*events))
    assert [(c.name, c.arguments) for c in answer.tool_calls] == [("f", {"a": 1}), ("g", {"b": 2})]


def test_fragments_may_have_their_arguments_beside_the_name():
    events = [{"call": {"index": 0, "name": "f"}}, {"call": {"index": 0, "arguments": '{"a"'}}]
    answer = streamed(*sse(*events, {"call": {"index": 0, "arguments": ": 1}"}}))
    assert [(c.name, c.arguments) for c in answer.tool_calls] == [("f", {"a": 1})]


@pytest.mark.parametrize("ids", [("1", "2"), (None, None)])
def test_another_call_with_the_same_index_is_one_of_its_own(ids):
    calls = [
        {"index": 0, "id": one, "function": {"name": name, "arguments": '{"a": 1}'}}
        for one, name in zip(ids, "fg", strict=True)
    ]
    answer = streamed(*sse(*({"call": [call]} for call in calls)))
    assert [(c.id, c.name, c.arguments) for c in answer.tool_calls] == [
        (ids[0], "f", {"a": 1}),
        (ids[1], "g", {"a": 1}),
    ]


@pytest.mark.parametrize("found", [{"tool": "f", "args": {}}, "f", {"name": ""}, {"index": 0, "arguments": "{}"}])
def test_what_is_found_in_events_and_is_no_call_did_not_not_happen(found):
    with pytest.raises(TargetError, match=r"stream_tool_call_field \$\.call finds .*, expected a mapping with name"):
        streamed(*sse({"t": "a"}, {"call": found}, "[DONE]"))


def test_the_event_mapping_goes_before_the_single_keys():
    mapping = {"token": "$.x", "done": "$.fin"}
    assert facts(streamed(*sse({"t": "no", "x": "yes"}, {"fin": 1}), stream_event_mapping=mapping))[0] == "yes"


def test_inline_thinking_is_taken_out_of_a_stream():
    output = streamed(*sse({"t": "<thi"}, {"t": "nk>hm</think> yes"})).output
    assert (output.final_answer, output.thinking) == ("yes", "hm")


@pytest.mark.parametrize(("last", "text"), [('data: {"t": "b"}', "ab"), ('data: {"t": "b', "a"), ("data: b", "ab")])
def test_a_last_line_without_its_end_counts_if_it_is_whole(last, text):
    assert facts(streamed(*sse({"t": "a"}), last))[0] == text


@pytest.mark.parametrize("last", ['{"t": "b', "nul"])
def test_a_last_line_of_json_may_be_cut(last):
    assert facts(streamed('{"t": "a"}\n', last, form="json_lines")) == ("a", 1, 1, False)


def test_a_stream_that_breaks_off_keeps_what_came_and_says_so():
    async def breaks(writer):
        writer.write(chunked(*[event.encode() for event in sse({"t": "a"}, {"t": "b"})], end=False))
        await writer.drain()

    answer = ask(breaks, response_mapping={}, stream=True, stream_format="sse", **FIELDS)
    assert facts(answer) == ("ab", 2, 2, False)
    assert "incomplete" in answer.extra["stream_interrupted"]


def test_a_stream_that_breaks_off_before_its_first_event_is_an_error():
    async def breaks(writer):
        writer.write(chunked(end=False))
        await writer.drain()

    with pytest.raises(TargetError, match="incomplete"):
        ask(breaks, response_mapping={}, stream=True, stream_format="sse", **FIELDS)


def test_a_stream_is_left_at_its_end_although_the_server_goes_on():
    async def endless(writer):
        writer.write(chunked(*[event.encode() for event in sse({"t": "a"}, "[DONE]")], end=False))
        while True:
            writer.write(b"2\r\n: \r\n")
            await writer.drain()
            await asyncio.sleep(0)

    assert facts(ask(endless, response_mapping={}, stream=True, stream_format="sse", **FIELDS))[0] == "a"


def test_a_stream_has_a_largest_size():
    with pytest.raises(TargetError, match="more than 1000 bytes"):
        streamed(*sse(*[{"t": "x" * 100}] * 20), max_response_bytes=1000)


@pytest.mark.parametrize(("status", "type"), [(404, "adapter_error"), (500, "http_5xx")])
def test_a_status_that_is_no_success_is_an_error(status, type):
    with pytest.raises(TargetError, match=str(status)) as raised:
        ask(reply({}, status), response_mapping={}, stream=True, stream_format="sse", **FIELDS)
    assert raised.value.type == type


LINES = st.lists(
    st.sampled_from(
        ['data: {"t": "ä"}', "data: text\u2028\x85more", "data: [DONE]", 'data: {"t": "b", "done": 0}', ": ping", ""]
    ),
    max_size=8,
)


@given(LINES, st.sampled_from(["\n", "\r\n", "\r"]), st.lists(st.integers(0, 200), max_size=6))
def test_events_depend_neither_on_line_ends_nor_on_how_the_bytes_are_cut(lines, end, cuts):
    data = "".join(line + end for line in lines).encode()
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    parts = [data[a:b] for a, b in pairwise(places)]

    def events(pieces):
        reader = EventReader("sse", event_paths(FIELDS))
        return [e for piece in pieces for e in reader.feed(piece)] + list(reader.end())

    assert events(parts) == events([data]) == events(["".join(f"{line}\n" for line in lines).encode()])


def test_a_stream_whose_lines_end_with_cr_is_read_as_it_arrives():
    pieces = [event.replace("\n", "\r") for event in sse({"t": "a"}, "plain", {"t": "b", "done": 1}, {"t": "never"})]
    assert facts(streamed(*pieces)) == ("aplainb", 3, 3, True)
