"""The page of a cell without a browser: what it holds, in which order, and what is one link away."""

from __future__ import annotations

import json
import re
import subprocess
from base64 import b64encode
from html import unescape

import pytest

from evalwright.model.cell import cell_key
from evalwright.model.plan import EvaluatorSpec
from evalwright.run.start import run_suite
from evalwright.viewer.pages.blocks import Blocks
from run.suites import suite
from viewer.reading import page, seen
from viewer.runs import ATTACK, made_run, site, with_messages


def test_a_cell_shows_everything_that_was_recorded(run, client):
    answer = client.get(f"/runs/{run.name}/cells?case=case-3&trial=1")
    path = f"/runs/{run.name}/cells/{cell_key('case-3', 'agent', 1)}"
    assert (answer.status_code, answer.headers["location"]) == (303, path)
    text = page(client, path)
    regions = re.findall(r'<section aria-labelledby="([\w-]+)"', text)
    assert regions == [
        "result",
        "input",
        "answer",
        "evaluators",
        "messages",
        "spans",
        "trials",
        "recorded",
        "reproduce",
    ]
    assert re.search(r'id="m2-name"><a href="#m2">Message 2</a>, assistant', text)
    for place in re.findall(r'href="#([^"]*)"', text):
        assert f'id="{place}"' in text
    assert 'trial 2</span> <a href="#trials">0 of 2 trials passed</a>' in text
    places = re.findall(r'<a href="#([\w-]+)">', text[: text.index('id="result"')])
    assert places == ["trials", "evaluators", "messages", "spans", "trials", "reproduce"]
    assert '>{"needle": "needle-3"}</pre>' in text  # quotes mean nothing there, and JSON is full of them
    says = seen(text)
    for part in ("needle-3", "Where is order 3?", "python:viewed_agent:judge", "because of the reply", "is polite"):
        assert part in says
    assert says.index("polite llm_judge") < says.index("says contains_text")
    assert "look_up" in says
    stored = client.get(f"{path}.json").json()
    lines = [json.loads(line) for line in (run / "traces.jsonl").read_text().splitlines()]
    assert stored["trace"] in lines
    assert stored["results"][1]["detail"]["judge_calls"]
    assert json.loads(client.get(f"{path}/whole?part=trace/messages/2/content").text) == {"needle": "needle-3"}
    assert client.get(f"{path}/whole?part=trace/nothing").status_code == 404


def test_of_a_long_conversation_the_ends_are_shown_and_the_rest_is_one_link_away(tmp_path):
    run = made_run(tmp_path, trials=1)
    with_messages(run, "case-1", 300)
    path = f"/runs/{run.name}/cells/{cell_key('case-1', 'agent', 0)}?status=pass"
    with site(run.parent) as client:
        text = page(client, path)
        assert len(text) < 100_000
        assert "100 of 300 messages" in seen(text)
        assert "100 of 300 tool calls" in seen(text)
        said = re.findall(r">said-(\d+)<", text)
        assert [said[0], said[49], said[50], said[-1]] == ["00000", "00049", "00250", "00299"]
        assert "Message 251" in seen(text)
        onward = [unescape(link) for link in re.findall(r'<a href="([^"]*)">Show ', text)]
        assert [link.partition("#")[2] for link in onward] == ["messages", "m51", "messages"]
        whole = page(client, onward[1].partition("#")[0])
        assert re.findall(r">said-(\d+)<", whole) == [f"{number:05d}" for number in range(300)]
        assert whole.count("asked-") == 300
        assert 'id="m51"' in whole
        assert "Show " not in seen(whole)
        assert "2 of 4" in seen(whole)  # still of the filter
        assert client.get(f"{path}&messages=some").status_code == 400


def test_what_a_judge_was_asked_is_open_where_it_did_not_pass(run, client):
    for case, opened in (("case-3", True), ("case-1", False)):
        text = page(client, f"/runs/{run.name}/cells/{cell_key(case, 'agent', 0)}")
        calls = text[text.index('<details class="calls"') : text.index('<section aria-labelledby="messages"')]
        assert calls.startswith('<details class="calls" open>') is opened
        for role in ("system", "user"):
            assert (f"<details open><summary>{role}</summary>" in calls) is opened


def test_an_error_shows_the_users_own_frame_first(run, client):
    text = page(client, f"/runs/{run.name}/cells/{cell_key('case-4', 'agent', 0)}")
    result = seen(text[text.index('id="result"') : text.index('id="input"')])
    assert result.index("ValueError: no order 4 in viewed_agent.py:") < result.index("Whole stack")


@pytest.mark.parametrize("path", ["cells/KEY", "label?order=suite&evaluator=says"])
def test_what_a_case_of_another_format_expects_is_shown(tmp_path, path):
    run = made_run(tmp_path, trials=1)
    cases = [json.loads(line) for line in (run / "cases.jsonl").read_text().splitlines()]
    cases[0]["extra"] = {"id": 0, "ground_truth": "It is ready.", "seat": "12A"}
    (run / "cases.jsonl").write_text("".join(f"{json.dumps(case)}\n" for case in cases))
    with site(tmp_path / "runs", labeller="ann") as client:
        text = page(client, f"/runs/{run.name}/{path.replace('KEY', cell_key('case-0', 'agent', 0))}")
        assert "Expected ground truth It is ready." in seen(text)
        assert ("12A" in text) == path.startswith("cells")


def test_the_next_cell_is_the_next_one_of_the_filter(run, client):
    rows = page(client, f"/runs/{run.name}?status=fail")
    first = unescape(re.search(r'<th scope="row"><a href="([^"]*)"', rows)[1])
    assert first.endswith("?status=fail")
    text = page(client, first)
    assert "1 of 5" in seen(text)
    assert "Previous cell" not in text
    following = unescape(re.search(r'href="([^"]*)"[^>]*>Next cell', text)[1])
    assert "2 of 5" in seen(page(client, following))


def test_texts_of_records_are_text(run, client):
    attacked = f"/cells/{cell_key(f'attack {ATTACK}', 'agent', 0)}"
    for path in ("", attacked, "?q=%3Cscript%3Ewindow.__xss=9%3C/script%3E"):
        text = page(client, f"/runs/{run.name}{path}")
        assert re.findall(r"<script[^>]*>", text) == re.findall(r'<script src="/assets/viewer\.\w+\.js">', text)
        assert not re.search(r"<[^>]+\son\w+=|<[^>]+\sstyle=|<b>The order", text)
    assert "⟦U+202E⟧" in page(client, f"/runs/{run.name}{attacked}")


def test_of_many_failed_evaluators_the_first_are_at_the_top_of_a_cell(tmp_path):
    checks = [EvaluatorSpec(f"check-{number}", "contains_text", {"all_of": ["never"]}) for number in range(30)]
    run = run_suite(suite(tmp_path, ["word"], evaluators=checks)).run_dir
    with site(run.parent) as client:
        text = page(client, f"/runs/{run.name}/cells/{cell_key('c0', 'main', 0)}")
    result, rest = text[text.index('id="result"') :].split('id="input"')
    assert result.count("<li>") == 21
    assert '<a href="#evaluators">10 more evaluators</a>' in result
    assert rest.count('<th scope="row">check-') == 30


def test_the_only_text_of_an_input_keeps_its_lines(tmp_path):
    run = run_suite(suite(tmp_path, [{"user_message": "Where is it?\nAnd when does it arrive?"}])).run_dir
    with site(run.parent) as client:
        text = page(client, f"/runs/{run.name}/cells/{cell_key('c0', 'main', 0)}")
    assert '<p class="label">user_message</p>' in text
    assert ">Where is it?\nAnd when does it arrive?</pre>" in text


def test_emoji_and_words_that_are_spelt_with_joiners_stay_whole(tmp_path):
    whole = "👩\u200d👧 ❤\ufe0f 1\ufe0f\u20e3 می\u200cخواهم क्\u200dष"
    made = run_suite(suite(tmp_path, [f"{whole} pass\u200dword x\ufe0f ❤\ufe0f\ufe0f می\u200c\u200cخواهم"]))
    with site(tmp_path / "runs") as client:
        text = page(client, f"/runs/{made.run_dir.name}/cells/{cell_key('c0', 'main', 0)}")
    hidden = "pass⟦U+200D⟧word x⟦U+FE0F⟧ ❤\ufe0f⟦U+FE0F⟧ می⟦U+200C⟧⟦U+200C⟧خواهم"
    assert f"{whole} {hidden}" in seen(text)


@pytest.mark.parametrize(
    "value", [{}, [], {"a": {"b": {"c": {"d": list(range(99))}}}}, [[[["x" * 200] * 9]] * 3, "y" * 99]]
)
def test_json_below_the_third_level_is_folded_and_whole(value):
    shown = Blocks(lambda part: "").of(value, "")
    lines = [line for part in shown.folds for line in ([part.title] if part.title else []) + part.text.split("\n")]
    assert "\n".join(lines) == shown.text
    folded = [part for part in shown.folds if part.title]
    assert bool(folded) == (len(shown.text) > 120)
    assert all(part.text.startswith(" " * 8) for part in folded)


def test_the_images_of_a_page_are_two_megabytes_and_each_of_the_others_has_an_address():
    blocks = Blocks(lambda part: f"whole of {part}")
    image = {"type": "image", "image_url": "data:image/png;base64," + b64encode(b"\x89PNG" + bytes(750_000)).decode()}
    shown = [blocks.of(image, str(number)) for number in range(4)]
    assert [bool(piece.image) for piece in shown] == [True, True, False, False]
    assert [piece.whole for piece in shown] == ["", "", "whole of 2", "whole of 3"]
    assert "750," in shown[3].text
    assert not Blocks(lambda part: "", 10_000_000).of({**image, "image_url": image["image_url"] * 3}, "").image


def test_what_an_evaluator_found_in_the_answer_is_marked(tmp_path):
    words = {"all_of": ["ready", "never"], "any_of": ["order", "parcel"], "none_of": ["lost"]}
    checks = [EvaluatorSpec("says", "contains_text", words)]
    run = run_suite(suite(tmp_path, ["The order is Ready or lost."], evaluators=checks)).run_dir
    with site(run.parent) as client:
        text = page(client, f"/runs/{run.name}/cells/{cell_key('c0', 'main', 0)}")
    marked = [("good", "order"), ("good", "Ready"), ("bad", "lost")]
    assert re.findall(r'<mark class="(\w+)">(\w+)</mark>', text) == marked


def test_a_limit_is_no_part_that_an_answer_lacks(tmp_path):
    checks = [EvaluatorSpec("cheap", "cost", {"budget": 0.5})]
    run = run_suite(suite(tmp_path, [2], "agents:costing", evaluators=checks)).run_dir
    with site(run.parent) as client:
        text = page(client, f"/runs/{run.name}/cells/{cell_key('c0', 'main', 0)}")
    assert "2 US dollars, the limit is 0.5" in text
    assert "Missed" not in text


def test_the_texts_beside_a_picture_are_shown_whole(tmp_path):
    image = "data:image/png;base64," + b64encode(b"\x89PNG" + bytes(100_000)).decode()
    asked = {"user_message": "word " * 100 + "end", "picture": {"type": "image_url", "image_url": {"url": image}}}
    run = run_suite(suite(tmp_path, [asked])).run_dir
    with site(run.parent) as client:
        text = page(client, f"/runs/{run.name}/cells/{cell_key('c0', 'main', 0)}")
    assert f'src="{image}"' in text
    assert asked["user_message"] in text


PNG = "data:image/png;base64,iVBORw=="


@pytest.mark.parametrize(
    ("part", "text", "image"),
    [
        ({"type": "image_url", "image_url": {"url": PNG}}, "[image_url, image/png, 4 bytes]", PNG),
        ({"type": "image_url", "image_url": PNG}, "[image_url, image/png, 4 bytes]", PNG),
        ({"type": "image_url", "image_url": {"url": "https://h/a.png"}}, "[image_url https://h/a.png]", ""),
        ({"type": "image", "image_url": PNG.replace("png", "gif")}, "[image, image/gif, 4 bytes]", ""),
        ({"type": "image", "image_url": PNG.replace("png", "svg+xml")}, "[image, image/svg+xml, 4 bytes]", ""),
        ({"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}}, "[input_audio wav]", ""),
        ({"type": "image", "source": {"media_type": "image/png", "data": "iVBO"}}, "[image image/png]", ""),
    ],
)
def test_an_image_is_shown_if_it_is_what_it_says_and_anything_else_is_named(part, text, image):
    shown = Blocks(lambda part: "").of(part, "")
    assert (shown.text, shown.image) == (text, image)


def test_only_a_part_of_the_kind_text_is_shown_as_its_text():
    blocks = Blocks(lambda part: part, 0)
    assert blocks.of({"type": "text", "text": "a" * 200}, "x").whole == "x/text"
    for other in ({"type": "note", "text": "a" * 200}, {"type": "text", "text": ["a" * 200]}):
        shown = blocks.of(other, "x")
        assert (shown.is_json, shown.whole) == (True, "x")


def test_a_text_that_fills_the_room_is_whole_and_a_longer_one_is_cut_after_a_line():
    text = "a" * 149 + "\n" + "b" * 150
    assert Blocks(lambda part: part, 300).of(text, "x") == (text, False, 0, "", "")
    assert Blocks(lambda part: part, 299).of(text, "x") == ("a" * 149 + "\n", False, 300, "x", "")
    full = Blocks(lambda part: part, 0)
    assert (full.is_full, full.of("c" * 151, "x").text) == (True, "c" * 150)


def test_values_of_steps_are_folded_on_the_page_of_their_cell(tmp_path):
    run = made_run(tmp_path, trials=1)
    traces = run / "traces.jsonl"
    value = json.dumps({"one": {"two": {"three": {"four": [f"needle {i} " + "x" * 40 for i in range(5)]}}}})
    traces.write_text(
        traces.read_text().replace('{"needle":"needle-0"}', value).replace('{"needle": "needle-0"}', value)
    )
    with site(run.parent) as client:
        text = page(client, f"/runs/{run.name}/cells/{cell_key('case-0', 'agent', 0)}")
    assert re.search(r'<details class="fold"><summary><code> *&#34;three&#34;: {</code></summary><pre[^>]*>', text)
    assert "needle 4" in text


def test_many_large_steps_leave_a_page_small_and_each_is_reachable(tmp_path):
    run = made_run(tmp_path, trials=1)
    lines = []
    for line in (run / "traces.jsonl").read_text().splitlines():
        trace = json.loads(line)
        first = trace["spans"][0] if trace["spans"] else {}
        values = {name: {"one": f"{name} " + "word " * 400} for name in ("input", "output")}
        trace["spans"] = [{**first, "span_id": f"s{n}", "name": f"step {n}", **values} for n in range(60 * bool(first))]
        lines.append(json.dumps(trace))
    (run / "traces.jsonl").write_text("".join(f"{line}\n" for line in lines))
    with site(run.parent) as client:
        text = page(client, f"/runs/{run.name}/cells/{cell_key('case-0', 'agent', 0)}")
        last = text[text.index("step 59") :]
        whole = client.get(unescape(re.search(r'href="([^"]*whole[^"]*)">Show all', last)[1])).json()
    assert len(text.encode()) <= 100_000
    assert "input word" in text  # the beginning of a text that is cut, not only its first line
    assert (whole["name"], whole["output"]) == ("step 59", values["output"])


@pytest.mark.parametrize(
    "case_id", ["plain", "it's; $(x)", "\u202egnp.exe", "a\\n'\u200b\U000e0041$HOME", "two\nlines"]
)
def test_the_command_that_reproduces_a_cell_names_its_case_also_when_it_is_copied(tmp_path, case_id):
    asked = suite(tmp_path, ["x"])
    asked.cases[0].id = case_id
    run = run_suite(asked).run_dir
    with site(run.parent) as client:
        text = page(client, f"/runs/{run.name}/cells/{cell_key(case_id, 'main', 0)}")
    command = unescape(re.search(r'aria-label="Command 1">(.*?)</pre>', text, re.DOTALL)[1])
    assert not re.search("[\u202e\u200b\U000e0041⟦]", command)
    said = subprocess.run(
        ["bash", "-c", f"evalwright() {{ printf '%s' \"$4\"; }}; {command}"],
        stdout=subprocess.PIPE,
        check=True,
        env={"LC_ALL": "C.UTF-8"},
    )
    assert said.stdout.decode() == case_id


@pytest.mark.slow("hundreds of steps")
@pytest.mark.parametrize("text", ["step", 'é<&"' * 40], ids=["short", "long in bytes"])
def test_hundreds_of_steps_messages_and_results_fit_on_a_page_and_all_are_one_link_away(tmp_path, text):
    run = made_run(tmp_path, trials=1)
    with_messages(run, "case-1", 300, text)
    lines = []
    for line in (run / "traces.jsonl").read_text().splitlines():
        trace = json.loads(line)
        step = {**trace["spans"][0], "input": text, "output": text} if trace["spans"] else {}
        trace["spans"] = [{**step, "span_id": f"s{n}", "name": f"step-{n:03d}"} for n in range(480 * bool(step))]
        lines.append(json.dumps(trace))
    (run / "traces.jsonl").write_text("".join(f"{line}\n" for line in lines))
    path = f"/runs/{run.name}/cells/{cell_key('case-1', 'agent', 0)}"
    with site(run.parent) as client:
        shown = page(client, path)
        whole = page(client, unescape(re.search(r'href="([^"]*)#spans">Show all 480', shown)[1]))
    assert len(shown.encode()) <= 100_000
    first = re.findall(r"step-(\d+)</summary>", shown)
    assert first == [f"{n:03d}" for n in range(len(first))]
    assert 30 <= len(first) < 480
    assert len(re.findall(r"step-(\d+)</summary>", whole)) == 480
    assert whole.count("said-") == 300
