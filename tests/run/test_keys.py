"""Keys of models that are missing are told before anything runs, all at once."""

from contextlib import closing

import pytest

from evalwright.errors import InputError
from evalwright.llm.cache import Cache, default_path
from evalwright.llm.choices import ModelChoices
from evalwright.model.chat import ChatReply
from evalwright.model.plan import EvaluatorSpec, Variant
from evalwright.model.snapshot import Case
from evalwright.run.missing_keys import with_keys
from evalwright.run.options import RunOptions
from evalwright.run.plan import plan_of
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.resumption import resume
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from mirrors.receiver import receiving
from run.suites import SAYS_DONE, suite

JUDGE = EvaluatorSpec("judge", "llm_judge", {"models": ["gpt-x", "claude-x"], "nl_assertions": ["is polite"]})
SIMILAR = EvaluatorSpec(
    "similar", "semantic_similarity", {"embedder_name": "openai-text-embedding-3-small", "reference_text": "x"}
)
SIMULATED = {
    "user_model": "claude-user",
    "user_persona_prompt": "impatient",
    "inner_system": {"adapter": "openai_chat", "model": "gpt-agent"},
    "stopping_criterion": {"type": "judge", "model": "groq/judge", "question": "over?"},
}


@pytest.fixture(autouse=True)
def no_keys(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    for name in ("OPENAI", "ANTHROPIC", "GROQ"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)
        monkeypatch.delenv(f"{name}_BASE_URL", raising=False)


def told(folder, choices=None, **parts):
    """The problems of a run: who asks, and the variable that is missing."""
    with pytest.raises(InputError) as raised:
        run_suite(suite(folder, ["hello", "again"], **parts), RunOptions(models=choices))
    return [(problem.key, problem.message.partition(" is not set")[0]) for problem in raised.value.problems]


def test_every_model_of_every_judge_is_told_once(tmp_path):
    assert told(tmp_path, evaluators=[JUDGE, SAYS_DONE, SIMILAR]) == [
        ("judge", "OPENAI_API_KEY"),
        ("judge", "ANTHROPIC_API_KEY"),
        ("similar", "OPENAI_API_KEY"),
    ]


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("Factuality", "gpt-4o-mini"),
        ("Faithfulness", "gpt-4o-mini"),
        ("EmbeddingSimilarity", "text-embedding-ada-002"),
        ("Moderation", "omni-moderation-latest"),
    ],
)
def test_premade_evaluators_that_ask_models_need_keys_too(tmp_path, name, model):
    with pytest.raises(InputError, match=f"OPENAI_API_KEY is not set: '{model}' needs a key"):
        run_suite(suite(tmp_path, ["hello"], evaluators=[EvaluatorSpec("it", name, {})]))


def test_nothing_is_left_behind(tmp_path):
    told(tmp_path, evaluators=[JUDGE])
    assert not (tmp_path / "runs").exists()


def test_systems_and_simulated_users_need_keys_too(tmp_path):
    variants = [Variant("chat", "anthropic", {"model": "claude-x"}), Variant("talk", "user_simulator", SIMULATED)]
    assert told(tmp_path, variants=variants) == [
        ("chat", "ANTHROPIC_API_KEY"),
        ("talk", "ANTHROPIC_API_KEY"),
        ("talk", "OPENAI_API_KEY"),
        ("talk", "GROQ_API_KEY"),
    ]


def test_members_of_a_composite_are_looked_at(tmp_path):
    member = {"name": "inner", "type": JUDGE.type, "config": JUDGE.config, "threshold": 0.5}
    member["extractor"] = {"type": "last_assistant"}
    both = EvaluatorSpec("both", "composite", {"evaluators": [member]})
    assert told(tmp_path, evaluators=[both]) == [("both", "OPENAI_API_KEY"), ("both", "ANTHROPIC_API_KEY")]


def test_a_named_variable_is_the_one_that_is_missing(tmp_path):
    spec = EvaluatorSpec("judge", "llm_judge", {"model": "gpt-x", "nl_assertions": ["x"], "api_key_env": "TEAM_KEY"})
    assert told(tmp_path, evaluators=[spec]) == [("judge", "TEAM_KEY")]


@pytest.mark.parametrize(
    "config",
    [
        {"model": "gpt-x", "base_url": "SERVER/v1"},
        {"model": "python:run.test_keys:answers"},
    ],
)
def test_who_needs_no_key_is_not_asked_for_one(tmp_path, config):
    with receiving(400) as server:
        config = {key: value.replace("SERVER", server.url) for key, value in config.items()}
        spec = EvaluatorSpec("judge", "llm_judge", {"nl_assertions": ["x"], **config})
        made = suite(tmp_path, ["done"], evaluators=[spec])
        outcome = run_suite(made, RunOptions(models=ModelChoices(no_cache=True)))
    assert len(list(open_run(outcome.run_dir)[0].results(dict))) == 1


async def answers(_request):
    """A gateway that says what no judge should."""
    return "{}"


def holding_replies(path):
    with closing(Cache(path)) as cache:
        cache.keep("a question", ChatReply(model="gpt-x", text="{}"))


@pytest.mark.parametrize("choice", ["replay", "cache", "no_network"])
def test_recordings_and_named_caches_need_no_key(tmp_path, choice):
    (tmp_path / "calls.jsonl").write_text("")
    holding_replies(tmp_path / "judges.sqlite")
    settings = {"replay": tmp_path / "calls.jsonl", "cache": tmp_path / "judges.sqlite", "no_network": True}
    choices = ModelChoices(**{choice: settings[choice]})
    outcome = run_suite(suite(tmp_path, ["done"], evaluators=[JUDGE]), RunOptions(models=choices))
    assert outcome.exit_code == 3


def test_judging_again_needs_the_keys_of_judges_only(tmp_path, monkeypatch):
    monkeypatch.setenv("TEAM_KEY", "k")
    chat = Variant(
        "chat",
        "openai_chat",
        {"model": "gpt-x", "api_key_env": "TEAM_KEY", "base_url": "http://127.0.0.1:9"},
        timeout_seconds=1,
    )
    outcome = run_suite(suite(tmp_path, ["hello"], variants=[chat]))
    monkeypatch.delenv("TEAM_KEY")
    assert re_evaluate(outcome.run_dir).summary.cells_total == 1
    with pytest.raises(InputError, match="OPENAI_API_KEY"):
        re_evaluate(outcome.run_dir, suite=suite(tmp_path, ["hello"], evaluators=[JUDGE]))


def test_judging_again_by_another_suite_names_that_suite_for_a_missing_key(tmp_path):
    outcome = run_suite(suite(tmp_path, ["hello"]))
    other = suite(tmp_path, ["hello"], evaluators=[JUDGE])
    other.source = tmp_path / "judged.yaml"
    with pytest.raises(InputError, match="OPENAI_API_KEY") as raised:
        re_evaluate(outcome.run_dir, suite=other)
    assert {problem.file for problem in raised.value.problems} == {str(tmp_path / "judged.yaml")}


def test_judging_again_needs_no_key_where_the_users_cache_holds_replies(tmp_path):
    outcome = run_suite(suite(tmp_path, ["hello"]))
    holding_replies(default_path())
    again = re_evaluate(outcome.run_dir, suite=suite(tmp_path, ["hello"], evaluators=[JUDGE]))
    assert again.summary.cells_total == 1


def options_named(tmp_path):
    with pytest.raises(InputError, match="needs a key") as raised:
        run_suite(suite(tmp_path, ["hello"], evaluators=[JUDGE]))
    assert "--" not in str(raised.value)  # what a program reads that has no options
    return {problem.option.partition(", or the address")[0] for problem in raised.value.problems}


def test_a_run_names_the_variables_of_local_servers_that_need_no_key(tmp_path):
    variants = [Variant("chat", "openai_chat", {"model": "gpt-x"}), Variant("own", "anthropic", {"model": "claude-x"})]
    named = Variant("named", "openai_chat", {"model": "gpt-x", "api_key_env": "MY_KEY"})
    with pytest.raises(InputError) as raised:
        run_suite(suite(tmp_path, ["hello"], variants=[*variants, named], evaluators=[JUDGE]))
    local = "or the address of a local server in "
    options = {(problem.key, problem.option.rpartition(local)[2]) for problem in raised.value.problems}
    both = {("judge", "OPENAI_BASE_URL"), ("judge", "ANTHROPIC_BASE_URL")}
    assert options == {("chat", "OPENAI_BASE_URL"), ("own", "ANTHROPIC_BASE_URL"), ("named", "OPENAI_BASE_URL")} | both


def test_a_run_names_the_cache_as_the_way_to_judge_without_a_key(tmp_path):
    assert options_named(tmp_path) == {"or --cache FILE with its replies"}


def test_a_run_names_the_users_own_cache_where_that_holds_replies(tmp_path):
    holding_replies(default_path())
    assert options_named(tmp_path) == {f"or --cache {default_path()} with its replies"}


def test_the_users_own_cache_is_not_opened_for_a_run_that_asks_nobody(tmp_path):
    default_path().parent.mkdir(parents=True)
    default_path().write_text("no database")
    assert run_suite(suite(tmp_path, ["done"], evaluators=[SAYS_DONE])).summary.cells_missing == 0


def test_a_damaged_cache_of_the_users_own_is_no_way_to_judge(tmp_path):
    default_path().parent.mkdir(parents=True)
    default_path().write_text("no database")
    assert told(tmp_path, evaluators=[JUDGE]) == [("judge", "OPENAI_API_KEY"), ("judge", "ANTHROPIC_API_KEY")]


def test_a_named_cache_without_replies_is_no_way_to_judge(tmp_path):
    assert told(tmp_path, ModelChoices(cache=tmp_path / "new.sqlite"), evaluators=[SIMILAR])


def test_a_finished_run_is_resumed_without_keys(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    chat = Variant("chat", "openai_chat", {"model": "gpt-x", "base_url": "http://127.0.0.1:9"}, timeout_seconds=1)
    outcome = run_suite(suite(tmp_path, ["hello"], variants=[chat]))
    monkeypatch.delenv("OPENAI_API_KEY")
    assert resume(outcome.run_dir).notes == ["nothing to do: every cell is finished"]


def test_an_unfinished_run_is_not_resumed_without_keys_and_stays_as_it_is(tmp_path, monkeypatch, agents):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    chat = Variant("chat", "openai_chat", {"model": "gpt-x"}, timeout_seconds=0.1)
    echo = Variant("echo", "python_function", {"target": "agents:echo"})
    run_dir = run_suite(suite(tmp_path, ["hello"], variants=[echo, chat])).run_dir
    monkeypatch.delenv("OPENAI_BASE_URL")
    for name in ("traces", "results", "verdicts"):
        (run_dir / f"{name}.jsonl").write_bytes(b"")
    agents.calls.clear()
    with pytest.raises(InputError, match="OPENAI_API_KEY is not set"):
        resume(run_dir)
    assert agents.calls == []
    assert (run_dir / "traces.jsonl").read_bytes() == b""


@pytest.fixture
def keys(monkeypatch):
    for name in ("OPENAI", "ANTHROPIC", "GROQ"):
        monkeypatch.setenv(f"{name}_API_KEY", "k")


def test_a_limit_of_money_needs_the_price_of_each_model_before_anything_runs(tmp_path, keys):
    choices = ModelChoices(budget_usd=1.0)
    with pytest.raises(InputError) as raised:
        run_suite(suite(tmp_path, ["hello"], evaluators=[JUDGE, SAYS_DONE]), RunOptions(models=choices))
    assert [(p.key, p.message.partition(",")[0]) for p in raised.value.problems] == [
        ("judge", "no price is known for 'gpt-x'"),
        ("judge", "no price is known for 'claude-x'"),
    ]
    chat = Variant("chat", "openai_chat", {"model": "gpt-x"})
    with pytest.raises(InputError, match=r"'gpt-x', so run\.cost_limit_usd cannot be enforced"):
        run_suite(suite(tmp_path, ["hello"], variants=[chat], cost_limit_usd=1.0))
    apart = Variant("apart", "openai_chat", {"model": "gpt-4o-mini"}, isolation="process")
    with pytest.raises(InputError, match="apart  a budget cannot limit a model that another process"):
        run_suite(suite(tmp_path, ["hello"], variants=[apart]), RunOptions(models=choices))
    assert not (tmp_path / "runs").exists()


def test_models_without_a_price_are_told_once_but_not_those_on_this_machine(tmp_path, keys):
    local = {"model": "gpt-local", "base_url": "http://127.0.0.1:9/v1"}
    configs = {"a": {"model": "gpt-x"}, "b": {"model": "gpt-x"}, "c": {"model": "gpt-4o-mini"}, "d": local}
    variants = [Variant(name, "openai_chat", config) for name, config in configs.items()]
    plan = plan_of(suite(tmp_path, ["hello"], variants=variants), RunOptions())
    assert len(list(with_keys(plan, [Case("a", "x"), Case("b", "x")], None))) == 2
    assert plan.warnings == ["no price is known for gpt-x: what it costs is in no total"]


@pytest.mark.parametrize(("budget", "limit"), [(None, None), (1.0, None), (None, 1.0)])
def test_leave_to_call_models_without_a_price_needs_a_limit_on_the_cost(tmp_path, keys, budget, limit):
    variant = Variant("chat", "openai_chat", {"model": "gpt-4o-mini"})
    plan = plan_of(suite(tmp_path, ["hello"], variants=[variant], cost_limit_usd=limit), RunOptions())
    list(with_keys(plan, [Case("a", "x")], ModelChoices(budget_usd=budget, allow_unpriced=True)))
    unlimited = "--allow-unpriced has no effect: neither --budget nor run.cost_limit_usd limits the cost"
    assert plan.warnings == ([] if budget or limit else [unlimited])


@pytest.mark.parametrize("original", [False, True])
def test_only_where_list_prices_hold_is_one_missed(tmp_path, keys, original):
    variants = [Variant(name, "openai_chat", {"model": "gpt-x"}, evalh_rules=original) for name in "ab"]
    plan = plan_of(suite(tmp_path, ["hello"], variants=variants), RunOptions())
    assert len(list(with_keys(plan, [Case("a", "x")], ModelChoices()))) == 1
    assert plan.warnings == ([] if original else ["no price is known for gpt-x: what it costs is in no total"])


@pytest.mark.parametrize("model", ["", " ", "azure/", "litellm/", "openrouter/a/", "python:", "python:module"])
def test_a_model_without_a_name_is_refused_before_anything_runs(tmp_path, keys, model):
    named = {"model": model, "base_url": "http://127.0.0.1:9/v1"}
    judge = EvaluatorSpec("judge", "llm_judge", {**named, "nl_assertions": ["x"]})
    chat = Variant("chat", "openai_chat", named)
    for given in ({"evaluators": [judge]}, {"variants": [chat]}):
        with pytest.raises(InputError, match=r"expected the name of a model|expected 'python:module:attribute'"):
            run_suite(suite(tmp_path, ["hello"], **given))
    assert not (tmp_path / "runs").exists()


def test_a_judges_function_that_does_not_exist_is_told_before_the_run(tmp_path):
    spec = EvaluatorSpec("kind", "llm_judge", {"model": "python:run.test_keys:no_such", "nl_assertions": ["is kind"]})
    with pytest.raises(InputError, match="no_such' cannot be imported"):
        run_suite(suite(tmp_path, ["a"], evaluators=[spec]), RunOptions())
