"""The cache of replies: private, bounded, shared by processes; and `evalwright cache`."""

import asyncio
import json
import multiprocessing
import sqlite3
import stat
from contextlib import closing
from functools import partial
from typing import ClassVar

import pytest

from evalwright.cli import main
from evalwright.errors import InputError
from evalwright.llm.cache import Cache
from evalwright.llm.choices import ModelChoices
from evalwright.llm.models import LiveModels
from evalwright.model.chat import ChatReply, Embedding, EmbeddingRequest
from evalwright.model.plan import Price
from llm.models import JSON, openai, outcomes_of, request
from mirrors.receiver import receiving
from targets.loopback import reply, serving
from warm import run


def replies(path):
    with closing(Cache(path)) as cache:
        return sum(count.replies for count in cache.counts())


def test_only_the_owner_may_read_it(tmp_path):
    file = tmp_path / "new" / "cache.sqlite"
    with closing(Cache(file)) as cache:
        cache.keep("k", ChatReply("yes", "m"))
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (file.parent, *file.parent.iterdir())}
    assert modes.pop("new") == 0o700
    assert set(modes.values()) == {0o600}


def test_the_oldest_replies_go_when_it_is_full(tmp_path):
    with closing(Cache(tmp_path / "c", most_bytes=200_000)) as cache:
        for number in range(600):
            cache.keep(str(number), ChatReply("x" * 1000, "m"))
        assert cache.size() < 600_000
        assert cache.find("0", ChatReply) is None
        assert cache.find("599", ChatReply).text == "x" * 1000
        assert cache.find("599", ChatReply).cached


def test_nothing_goes_before_it_is_full(tmp_path):
    with closing(Cache(tmp_path / "c", most_bytes=200_000)) as cache:
        number = 0
        while cache.size() < 180_000 and number < 500:
            cache.keep(str(number), ChatReply("x" * 1000, "m"))
            number += 1
        assert sum(count.replies for count in cache.counts()) == number


class Busy(sqlite3.Connection):
    """Refuses at first, as SQLite does where two processes change the journal at the same time."""

    refusals: ClassVar = ["database is locked", "database is locked"]

    def execute(self, statement, *values):
        if "journal_mode" in statement and self.refusals:
            raise sqlite3.OperationalError(self.refusals.pop())
        return super().execute(statement, *values)


def test_a_cache_that_another_process_makes_at_the_moment_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Busy))
    with closing(Cache(tmp_path / "c")) as cache:
        cache.keep("k", ChatReply("yes", "m"))
        assert cache.find("k", ChatReply).text == "yes"
    assert Busy.refusals == []
    Busy.refusals.append("disk I/O error")
    with pytest.raises(InputError, match="disk I/O error"):
        Cache(tmp_path / "c")


def test_an_embedding_is_no_reply(tmp_path):
    with closing(Cache(tmp_path / "c")) as cache:
        cache.keep("k", Embedding([[0.5]], "m"))
        assert cache.find("k", ChatReply) is None
        assert cache.find("k", Embedding) == Embedding([[0.5]], "m", cached=True)


def fill(path, first, ready):
    ready.wait()
    with closing(Cache(path)) as cache:
        for number in range(first, first + 40):
            cache.keep(str(number), ChatReply("x", "m"))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a fork where other tests have left threads
def test_processes_that_begin_at_once_lose_nothing(tmp_path):
    context = multiprocessing.get_context("fork")
    ready = context.Barrier(6)
    workers = [context.Process(target=fill, args=(tmp_path / "c", 100 * n, ready)) for n in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert ([worker.exitcode for worker in workers], replies(tmp_path / "c")) == ([0] * 6, 240)


def test_embeddings_of_judges_are_paid_for_once(tmp_path):
    data = [{"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}]
    usage = {"prompt_tokens": 100, "total_tokens": 100}
    body = reply({"object": "list", "model": "e", "data": data, "usage": usage}, headers=JSON)

    async def embed():
        async with serving(body) as server:
            here = {"OPENAI_BASE_URL": f"http://127.0.0.1:{server.port}/v1"}
            models = LiveModels({"e": Price(10.0, 0.0)}, ModelChoices(cache=tmp_path / "c"), here)
            try:
                outcomes_of = [
                    await models.embed(EmbeddingRequest("e", ["text"]), purpose)
                    for purpose in ("judge", "judge", "system")
                ]
                return outcomes_of, len(server.requests)
            finally:
                await models.close()

    (first, again, system), requests = asyncio.run(embed())
    assert (again.vectors, again.cached, again.cost_usd) == ([[0.5, 0.25]], True, pytest.approx(0.001))
    assert (first.cached, system.cached, requests) == (False, False, 2)


def test_the_command_shows_prunes_and_clears(tmp_path):
    with closing(Cache(tmp_path / "c")) as cache:
        for number in range(20):
            cache.keep(str(number), ChatReply("x" * 100_000, f"model-{number % 2}"))

    def cache_command(*words):
        done = run(["-m", "evalwright", "cache", *words, "--cache", "c"], cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    shown = cache_command("stats")
    assert shown.split()[:4] == ["10", "1.0", "MiB", "model-0"]
    assert "20 cached replies" in shown
    assert cache_command("prune", "--older-than", "1h") == "removed 0 cached replies\n"
    cache_command("prune", "--max-size", "1MB")
    assert 0 < replies(tmp_path / "c") < 11
    assert (tmp_path / "c").stat().st_size < 1_100_000
    cache_command("clear")
    assert replies(tmp_path / "c") == 0


def test_nothing_of_a_database_of_another_program_is_changed(tmp_path):
    file = tmp_path / "shop.db"
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE users (name TEXT)")
    file.chmod(0o640)
    before = file.read_bytes(), file.stat().st_mode
    with pytest.raises(InputError, match="is a database of another program"):
        Cache(file)
    assert (file.read_bytes(), file.stat().st_mode) == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["prune"], "expected --max-size SIZE"),
        (["clear", "--max-size", "1MB"], "only 'evalwright cache prune'"),
        (["prune", "--max-size", "big"], "expected a size such as 200MB"),
        (["prune", "--older-than", "-3d"], "expected an age such as 30d"),
        (["purge"], "prune"),
        (["stats", "--cache", "nope.sqlite"], "nope.sqlite  does not exist"),
    ],
)
def test_mistakes_of_the_command(tmp_path, words, said):
    done = run(["-m", "evalwright", "cache", *words], cwd=tmp_path)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_only_what_is_old_or_too_much_is_removed(tmp_path):
    with closing(Cache(tmp_path / "c")) as cache:
        for key in ("old", "new"):
            cache.keep(key, ChatReply("x", "m"))
        with closing(sqlite3.connect(tmp_path / "c")) as database, database:
            database.execute("UPDATE replies SET stored_at = datetime('now', '-3 days') WHERE key = 'old'")
        assert (cache.prune(most_bytes=10**9), cache.prune(older_than_days=4), cache.prune()) == (0, 0, 0)
        assert cache.prune(older_than_days=2) == 1
        assert (cache.find("old", ChatReply), cache.find("new", ChatReply).text) == (None, "x")


def test_a_reply_of_one_server_is_none_of_another(tmp_path):
    async def ask(texts):
        said = []
        for text in texts:
            async with serving(openai(text)) as server:
                models = LiveModels(
                    None,
                    ModelChoices(cache=tmp_path / "c"),
                    {"OPENAI_BASE_URL": f"http://127.0.0.1:{server.port}/v1"},
                )
                said.append((await models.chat(request())).text)
                await models.close()
        return said

    assert asyncio.run(ask(["first", "second"])) == ["first", "second"]


@pytest.mark.parametrize(
    ("purpose", "made", "kept"),
    [
        ("judge", {"finish_reason": "stop"}, 1),
        ("judge", {"finish_reason": "length"}, 0),
        ("judge", {"finish_reason": "content_filter"}, 0),
        ("judge", {"refusal": "no"}, 0),
        ("system", {"finish_reason": "stop"}, 0),
        ("user", {"finish_reason": "stop"}, 0),
    ],
)
def test_only_whole_replies_of_judges_are_kept(tmp_path, purpose, made, kept):
    refusal, ended = made.get("refusal"), made.get("finish_reason", "stop")
    choice = {"index": 0, "finish_reason": ended, "message": {"content": "yes", "refusal": refusal}}
    body = {"model": "m", "choices": [choice]}
    path = tmp_path / "c"
    _, server = outcomes_of([reply(body, headers=JSON)], purpose=purpose, cache=path)
    assert len(server.requests) == 1
    assert (replies(path) if path.exists() else 0) == kept


SUITE = """
eval: {name: judged}
dataset: {type: jsonl, path: cases.jsonl}
systems: [{name: s, adapter: python_function, target: "agent:answer"}]
evaluators:
  - name: nice
    type: llm_judge
    config: {model: m, base_url: URL, rubric: Is it nice?, scale: {min: 0, max: 1}, pass_threshold: 0.5}
output: {type: local_files, path: runs}
"""


def exit_code(suite):
    """Of a run in this process, which imports the client of the models once for all of them."""
    with pytest.raises(SystemExit) as ended:
        main(["run", suite, "--cache", "judges.sqlite"])
    return ended.value.code or 0


@pytest.mark.parametrize("unreadable", ["I cannot say", "<think>it is", '{"score": 17, "reasoning": "so"}'])
def test_a_reply_that_cannot_be_read_is_not_what_the_next_run_gets(tmp_path, monkeypatch, unreadable):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text("def answer(case):\n    return 'yes'\n")
    (tmp_path / "cases.jsonl").write_text('{"id": "a", "input": {"question": "q"}}\n')

    def judged(text):
        """The exit code of a run whose judge says this, if it is called at all, and how often it was called."""
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        server.body, before = json.dumps({"model": "m", "choices": [choice]}).encode(), len(server.requests)
        return exit_code("eval.yaml"), len(server.requests) - before

    with receiving(headers={"Content-Type": "application/json"}) as server:
        (tmp_path / "eval.yaml").write_text(SUITE.replace("URL", server.url))
        code, calls = judged(unreadable)
        assert code == 3
        assert calls
        assert judged('{"reasoning": "so", "score": 1}') == (0, 1)
        assert judged(unreadable) == (0, 0)  # what could be read is in the cache


OF_PROMPTFOO = """
prompts: ["{{q}}"]
providers: [echo]
defaultTest: {options: {provider: {id: "openai:chat:m", config: {apiBaseUrl: URL, apiKey: none, replyRetries: 1}}}}
tests: [{vars: {q: yes, query: q, context: It is so.}, assert: [{type: KIND, value: nice}]}]
"""
OF_PIXIE = """
eval: {name: judged}
dataset: {type: jsonl, path: cases.jsonl}
systems: [{name: s, adapter: python_function, target: "agent:answer"}]
evaluators: [{name: nice, type: KIND, config: {model: m}}]
output: {type: local_files, path: runs}
"""


OF_AGENTV = """
name: judged
evalcases: [{id: a, expected_outcome: x, input: q, execution: {evaluators: [{name: j, type: llm_judge}]}}]
"""
TARGETS = """
targets:
  - {name: default, provider: mock, response: yes, judge_target: judge}
  - {name: judge, provider: openai, model: m, base_url: URL, api_key: "${{ OPENAI_API_KEY }}"}
"""
FILES = {OF_PROMPTFOO: "promptfooconfig.yaml", OF_AGENTV: "EVAL.yaml"}


@pytest.mark.parametrize(
    ("suite", "kind", "unreadable", "readable"),
    [
        (OF_AGENTV, "", "I cannot say", '{"score": 1}'),
        (OF_PROMPTFOO, "llm-rubric", "I cannot say", '{"pass": true, "score": 1}'),
        (OF_PROMPTFOO, "context-faithfulness", " ", "Final verdict for each statement in order: Yes."),
        (OF_PIXIE, "Factuality", "I cannot say", '{"reasons": "so", "choice": "C"}'),
        (OF_PIXIE, "Factuality", '{"choice": "Z"}', '{"reasons": "so", "choice": "C"}'),
        (OF_PIXIE, "ContextRelevancy", '{"sentences": "all"}', '{"sentences": [{"sentence": "It is so."}]}'),
    ],
)
def test_neither_do_judges_of_other_formats_keep_it(tmp_path, monkeypatch, suite, kind, unreadable, readable):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text("def answer(case):\n    return 'yes'\n")
    expected = {"facts": {"ground_truth": "yes"}}
    case = {"id": "a", "input": {"question": "q"}, "expected": expected, "metadata": {"context": "It is so."}}
    (tmp_path / "cases.jsonl").write_text(json.dumps(case) + "\n")

    def judged(text):
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        server.body, before = json.dumps({"model": "m", "choices": [choice]}).encode(), len(server.requests)
        return exit_code(file), len(server.requests) - before

    with receiving(headers={"Content-Type": "application/json"}) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        file = FILES.get(suite, "eval.yaml")
        (tmp_path / "targets.yaml").write_text(TARGETS.replace("URL", server.url))
        (tmp_path / file).write_text(suite.replace("URL", server.url).replace("KIND", kind))
        code, calls = judged(unreadable)
        assert code == (1 if suite == OF_AGENTV else 3)  # AgentV's judges score 0 then
        assert calls
        assert judged(readable)[0] == 0
        assert judged(unreadable) == (0, 0)  # what could be read is in the cache
