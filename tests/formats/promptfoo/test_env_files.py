"""Variables from `.env` files: that of the working directory, and those that the configuration names."""

from __future__ import annotations

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.resumption import retry
from formats.promptfoo.runs import Ran, run, write

KEY = "sk-Zq81xkW0vv2LpTr5"


def asked(expected, prompt="{{q}} {{env.SHOP_TOWN}}", **more):
    tests = [{"vars": {"q": "a"}, "assert": [{"type": "equals", "value": expected}]}]
    return {"prompts": [prompt], "providers": ["echo"], "tests": tests, **more}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SHOP_TOWN", raising=False)


def test_the_env_file_of_the_working_directory_is_read(tmp_path):
    (tmp_path / ".env").write_text("SHOP_TOWN='Bonn'\n")
    (tmp_path / "evals").mkdir()
    result = run(tmp_path / "evals", asked("a Bonn"))
    assert (result.statuses, result.outcome.summary.warnings) == (["pass"], [])


def test_a_configuration_passes_variables_on_under_names_of_its_own(tmp_path, monkeypatch):
    """Within `env`, those of the process count before its own."""
    monkeypatch.setenv("SHOP_TOWN", "Bonn")
    own = {"SHOP_TOWN": "{{env.SHOP_TOWN}}!", "NEAR": "near {{env.FAR}}", "FAR": "{{env.SHOP_TOWN}}?"}
    config = asked("a Bonn! near Bonn? Bonn?", "{{q}} {{env.SHOP_TOWN}} {{env.NEAR}} {{env.FAR}}", env=own)
    assert run(tmp_path, config).statuses == ["pass"]


def test_a_secret_that_a_configuration_passes_on_is_not_stored(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOP_TOWN", KEY)
    config = asked("", "{{q}} {{env.SHOP_TOWN}}", env={"SHOP_TOWN": "{{env.SHOP_TOWN}}"})
    run_dir = run(tmp_path, config).outcome.run_dir
    assert not [path for path in run_dir.rglob("*") if path.is_file() and KEY in path.read_text()]


def test_variables_of_the_process_take_precedence(tmp_path, monkeypatch):
    (tmp_path / ".env").write_text("SHOP_TOWN=Bonn\n")
    monkeypatch.setenv("SHOP_TOWN", "Oslo")
    assert run(tmp_path, asked("a Oslo")).statuses == ["pass"]


def test_files_that_the_configuration_names_take_precedence_over_it(tmp_path):
    (tmp_path / ".env").write_text("SHOP_TOWN=Bonn\n")
    config = asked("a Rome", commandLineOptions={"envPath": ["first.env", "second.env"]})
    files = {"first__env": "SHOP_TOWN=Paris\n", "second__env": "SHOP_TOWN=Rome\n"}
    assert run(tmp_path, config, **files).statuses == ["pass"]
    config["commandLineOptions"] = {"envPath": "first.env, gone.env"}
    with pytest.raises(InputError, match=r"commandLineOptions.envPath  there is no file 'gone.env'"):
        load_suite(write(tmp_path, config))


def test_files_of_the_command_line_are_read_before_it(tmp_path):
    (tmp_path / ".env").write_text("SHOP_TOWN=Bonn\nSHOP_STREET=Ring\n")
    named = [tmp_path / "one.env", tmp_path / "two.env"]
    files = {"one__env": "SHOP_TOWN=Paris\n", "two__env": "SHOP_TOWN=Rome\n"}
    config = asked("a Rome Ring", "{{q}} {{env.SHOP_TOWN}} {{env.SHOP_STREET}}")
    config["commandLineOptions"] = {"envPath": "one.env"}
    assert run(tmp_path, config, options={"env_file": named}, **files).statuses == ["pass"]
    with pytest.raises(InputError, match="--env-file: there is no file"):
        load_suite(tmp_path / "promptfooconfig.yaml", options={"env_file": [tmp_path / "gone"]})


def test_keys_in_it_are_masked_and_known_to_a_retry(tmp_path):
    (tmp_path / ".env").write_text(f"SHOP_API_KEY={KEY}\n")
    shop = (
        "from pathlib import Path\n"
        "def call_api(prompt, *_):\n"
        "    return {'output': 'open ' + prompt} if Path('open').exists() else {'error': prompt}\n"
    )
    config = {**asked("", "{{env.SHOP_API_KEY}}"), "providers": ["python:shop.py"]}
    config["tests"][0]["assert"] = [{"type": "contains", "value": "open sk-"}]
    ran = run(tmp_path, config, shop__py=shop)
    assert ran.statuses == ["error"]
    (tmp_path / "open").touch()
    assert Ran(retry(ran.outcome.run_dir)).statuses == ["pass"]
    stored = [file.read_text(errors="replace") for file in ran.outcome.run_dir.rglob("*") if file.is_file()]
    assert not any(KEY in text for text in stored)


def test_a_key_of_the_user_is_not_sent_to_an_address_from_a_file(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    (tmp_path / ".env").write_text("OPENAI_BASE_URL=https://elsewhere.example/v1\n")
    with pytest.raises(InputError, match="would be sent to the address that only this file sets"):
        load_suite(write(tmp_path, asked("a")))


@pytest.mark.parametrize(
    ("provider", "name"),
    [
        ("http://127.0.0.1:1/{{env.SHOP_TOWN}}/x", "http://127.0.0.1:1/<SHOP_TOWN>/x"),
        ({"id": "echo", "label": "with {{env.SHOP_TOWN}}"}, "with market-town"),
        ({"id": "echo", "label": "with {{env.SHOP_KEY}}"}, "with <SHOP_KEY>"),
        ("openai:{{env.SHOP_TOWN}}", "openai:market-town"),
    ],
)
def test_no_name_shows_what_is_secret_or_part_of_an_address(tmp_path, monkeypatch, provider, name):
    monkeypatch.setenv("SHOP_TOWN", "market-town")
    monkeypatch.setenv("SHOP_KEY", KEY)
    suite = load_suite(write(tmp_path, asked("a", providers=[provider])))
    assert [variant.name for variant in suite.variants] == [name]


def test_a_provider_has_variables_of_its_own(tmp_path):
    code = "def call_api(p, o, c):\n    return {'output': ' '.join([p, o['config']['town'], o['env']['SHOP_TOWN']])}\n"
    provider = {"id": "file://p.py", "env": {"SHOP_TOWN": "Bonn"}, "config": {"town": "{{env.SHOP_TOWN}}"}}
    ran = run(tmp_path, asked("a Bonn Bonn", "{{q}}", providers=[provider]), p__py=code)
    assert (ran.statuses, ran.outcome.summary.warnings) == (["pass"], [])


def test_variables_of_a_provider_that_nothing_reads_are_told(tmp_path):
    providers = [{"id": "echo", "env": {"SHOP_TOWN": "Bonn"}}]
    suite = load_suite(write(tmp_path, asked("a", "{{q}}", providers=providers)))
    assert [(warning.key, warning.message) for warning in suite.warnings] == [
        ("providers[0].env.SHOP_TOWN", "nothing reads this variable")
    ]


WITH_CREDENTIALS = """
prompts: ["{{q}}"]
providers: ["file://agent.py"]
tests:
  - vars: {q: a, api_key: k9-literal-key}
    assert: [{type: contains, value: "{{api_key}}"}]
  - vars: {q: b}
    assert: [{type: equals, value: {password: hunter2pass}}]
  - vars: {q: c}
    assert: [{type: not-contains, value: "k9-literal-key"}]
"""
UNTIL_FIXED = """
from pathlib import Path

def call_api(prompt, options, context):
    if not Path(__file__).with_name("fixed").exists():
        return {"error": "down"}
    return {"output": {"password": "hunter2pass"} if prompt == "b" else "it is k9-literal-key"}
"""


def test_a_retry_compares_with_the_credentials_that_its_cases_contain(tmp_path):
    ran = run(tmp_path, WITH_CREDENTIALS, agent__py=UNTIL_FIXED)
    assert ran.statuses == ["error"] * 3
    (tmp_path / "fixed").touch()
    assert Ran(retry(ran.outcome.run_dir)).statuses == ["pass", "pass", "fail"]
    stored = [path.read_text() for path in ran.outcome.run_dir.rglob("*") if path.is_file()]
    assert not [text for text in stored if "k9-literal-key" in text or "hunter2pass" in text]


def test_a_retry_without_the_credentials_of_its_cases_is_rejected(tmp_path, monkeypatch):
    ran = run(tmp_path, WITH_CREDENTIALS, agent__py=UNTIL_FIXED)
    (tmp_path / "fixed").touch()
    write(tmp_path, WITH_CREDENTIALS.replace("q: c", "q: d"))
    with pytest.raises(InputError, match="the case 'test-0' needs the secret api_key, which is never stored"):
        retry(ran.outcome.run_dir)
    monkeypatch.setenv("api_key", "k9-literal-key")
    with pytest.raises(InputError, match="the case 'test-1' needs the secret password, which is never stored"):
        retry(ran.outcome.run_dir)
    monkeypatch.setenv("password", "hunter2pass")
    assert Ran(retry(ran.outcome.run_dir)).statuses == ["pass", "pass", "fail"]


def test_stored_answers_are_judged_alike_by_credentials_that_are_masked_in_both(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOP_TOWN", "market-town")
    (tmp_path / "fixed").touch()
    town = """  - vars: {q: "in {{env.SHOP_TOWN}}"}
    assert:
      - {type: contains, value: "{{env.SHOP_TOWN}}"}
      - {type: javascript, value: "output.includes('k9-literal-key')"}
"""
    agent = UNTIL_FIXED.replace('"it is', 'prompt + " it is')
    ran = run(tmp_path, WITH_CREDENTIALS + town, agent__py=agent)
    assert ran.statuses == ["pass", "pass", "fail", "pass"]
    assert Ran(re_evaluate(ran.outcome.run_dir)).statuses == ran.statuses
