"""The plan of a run (produced), stored as `plan.json`: all that running, resuming and re-evaluating need.

Values that came from secret environment variables are stored as `${NAME}` and expanded again when the plan is read.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec

from evalwright.model.score_rule import ScoreRule, reaches

__all__ = [
    "MOST_TRIALS",
    "EvaluatorSpec",
    "Executor",
    "PassCriteria",
    "Placement",
    "Plan",
    "Plugin",
    "Price",
    "RetryRule",
    "RunSettings",
    "Shard",
    "UntilDecided",
    "Variant",
]

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
_MOST_SHARDS = 999_999
MOST_TRIALS = 10_000
"""Of a case: the 16-bit counters of `scoring.counts` must not overflow."""


class Plugin(msgspec.Struct, frozen=True):
    """Something registered by name, with its own configuration: a store, a mirror, an enricher, a workspace."""

    type: str
    config: dict[str, Any] = {}


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model costs: US dollars per million tokens. Thinking tokens are part of the output unless priced
    separately."""

    input_per_million_tokens: float
    output_per_million_tokens: float
    thinking_per_million_tokens: float = 0.0
    cached_input_per_million_tokens: float | None = None
    """Input read from the provider's cache; None: costs the same as other input."""
    cache_write_per_million_tokens: float | None = None
    """Input written to the provider's cache; None: costs the same as other input."""


class Placement(msgspec.Struct, frozen=True):
    """The resources that each worker of a system takes from a cluster, under Ray's names; None leaves it to Ray."""

    num_cpus: float | None = None
    num_gpus: float | None = None
    memory: float | None = None
    """Bytes."""
    resources: dict[str, float] = {}
    actors: int | None = None
    """The number of workers, instead of the executor's."""


class Executor(msgspec.Struct, frozen=True):
    """Where the systems are called, if not in this process: with `ray`, by the workers of a Ray cluster."""

    type: str
    address: str | None = None
    """Of the cluster. None: the variable RAY_ADDRESS, else a cluster on this machine for this run alone."""
    working_dir: str | msgspec.UnsetType | None = msgspec.UNSET
    """The folder that is sent to other machines; None if they have all they need. Unset: the suite's."""
    runtime_env: dict[str, Any] = {}
    """Passed to Ray unchanged."""
    actors: int | None = None
    """The number of workers of each system; None: one for each machine, and enough for all concurrent calls."""
    per_actor: int = 64
    """Concurrent calls in one worker."""
    wait_seconds: float = 600.0
    """How long the run waits for a system that has no worker left."""
    judges: Placement | msgspec.UnsetType = msgspec.UNSET
    """What each worker takes that calls a judge's model which is a Python function; unset: this process calls it."""


class Variant(msgspec.Struct, frozen=True):
    """One system under test: `adapter` names the target type, `config` is the target's own."""

    name: str
    adapter: str
    config: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    timeout_seconds: float = 120
    concurrency: int | None = None
    isolation: str = "none"
    """`process` runs the target in worker processes of its own, so that it cannot end or corrupt the run."""
    trials: _Count | None = None
    """Overrides the run's number of trials."""
    pool: str | None = None
    """One of `RunSettings.pools`: the variant shares its limit of calls with other variants in the pool."""
    enrich_trace_from: list[Plugin] = []
    evalh_rules: bool = False
    """The suite is run by evalh's rules (`--format evalh`): names that a template does not find are empty, an answer
    may be missing, and a Python function of a case and a variant returns a mapping with any keys."""
    any_mapping: bool = False
    """A Python function may return a mapping with any keys as its structured answer. Set for systems passed from
    Python, where no file could say so."""
    ray: Placement | msgspec.UnsetType = msgspec.UNSET
    schema_version: str = "1.0"


class EvaluatorSpec(msgspec.Struct, frozen=True):
    """One evaluator of a plan: `type` names the evaluator type, `config` is the evaluator's own."""

    name: str
    type: str
    config: dict[str, Any] = {}
    weight: float = 1.0
    """Its weight in the score of a cell, if the pass criteria weigh scores."""
    required: float | None = None
    """A cell fails if this evaluator's score is below this number."""
    threshold: float | None = None
    """The score from which a result passes, compared by `threshold_op`; None leaves that to the evaluator."""
    threshold_op: str = "gte"
    extractor: Plugin | None = None
    """Picks the text that is evaluated instead of the final answer; the text is kept in the result."""
    called: str | msgspec.UnsetType = msgspec.UNSET
    """The type's name in results, if the format has a name of its own for it."""

    def gate_missed(self, score: float | None) -> str:
        """The message for a score below the required one; "" if the score reaches it."""
        missed = self.required is not None and not reaches(score or 0.0, self.required)
        return f"required, at least {self.required:g}" if missed else ""


class PassCriteria(msgspec.Struct, frozen=True):
    """When a cell passes; without criteria, if every evaluator passed without error.

    With the rule `bands`, the weighted mean of the scores decides, and a cell may be `borderline`; with a `threshold`,
    it passes if that mean reaches the threshold, and fails otherwise. `errored_cases` decides about a cell whose system
    raised an error: `error` shows it to no evaluator and leaves it out of every rate; `evaluate` lets its evaluators
    decide; `count` lets them judge it, keeps it an error, and counts errors as not passed in rates, as the original
    evalh does. `errored_evaluators` is `error` (a cell with an evaluator that errored has no verdict) or `fail` (it
    fails).
    """

    all_required: list[str] = []
    any_required: list[str] = []
    errored_cases: str = "error"
    errored_evaluators: str = "error"
    spoiling_errors: list[str] = []
    """Error types of a single evaluator that spoil the cell: the other results are kept but do not count."""
    rule: str = "evaluators"
    threshold: float | None = None


class RetryRule(msgspec.Struct, frozen=True):
    """Error types of a target that are retried (`*` for all); attempt n+1 waits `backoff_seconds * 2**(n-1)`."""

    max_attempts: int = 1
    on: list[str] = []
    backoff_seconds: float = 0.0
    once: bool = False
    """The suite asks for one attempt: a service is called only once even if it says when to call again."""


class RunSettings(msgspec.Struct, frozen=True):
    """How the cells are run."""

    max_concurrency: int = 4
    per_variant_concurrency: int | None = None
    trials: _Count = 1
    retry: RetryRule = RetryRule()
    baseline_variant: str | None = None
    evaluator_timeout_seconds: float = 60.0
    cost_limit_usd: float | None = None
    """US dollars for all calls of the systems; a call that would start beyond it is recorded as `cost_limit`."""
    stop_after_errors: int = 20
    """A system is no longer called after this many cells with the same error and none with an answer; 0: no limit."""
    alternate: bool | msgspec.UnsetType = msgspec.UNSET
    """The variants of a case and trial start one after the other, each time with a different one first, so that drift
    during the run, such as of a service, affects all alike."""
    pools: dict[str, int] = {}
    """Maximum number of cells in flight, by the name of a pool."""
    keep_judge_calls: bool = True
    """Results keep what their evaluators sent to models, and the replies, in full as `detail.judge_calls`."""
    executor: Executor | msgspec.UnsetType = msgspec.UNSET
    """Unset: this process."""
    index: bool | msgspec.UnsetType = msgspec.UNSET
    """False: no index of the run is written, and none is built without being asked for, however large the run is."""

    @property
    def places_judges(self) -> bool:
        """Whether workers call judges' models that are Python functions."""
        return isinstance(self.executor, Executor) and self.executor.judges is not msgspec.UNSET


class UntilDecided(msgspec.Struct, frozen=True):
    """A run that ends as soon as it is decided, however often that is checked; its cases are stored in the order of
    bets."""

    against: str
    """As the user named it: a run, or another variant of this run."""
    run_id: str | None
    """None for a variant of this run."""
    variant_a: str
    variant_b: str
    margin: float
    alpha: float
    seed: int
    """Determines the order in which units are looked at."""
    max_cost_usd: float | None = None
    continues: str | None = None
    """The id of the run whose capital this one takes over."""


class Shard(msgspec.Struct, frozen=True):
    """The part of a run that is done here: all cells of the cases at positions `index - 1` modulo `of`."""

    index: int
    """From 1."""
    of: int
    by: str = "case"
    cases_sha256: str = ""
    """SHA-256 (hex) of all cases as stored; the same for every shard."""
    cost_limit_usd: float | None = None
    """The share of the run's cost limit, US dollars."""
    suite_sha256: str = ""
    """SHA-256 (hex) of the suite without the values of secrets: keys differ between machines, and expire."""
    leased: bool = False
    """The limits are shared by means of a ledger, and the shard has no part of its own."""

    def __post_init__(self) -> None:
        if not 1 <= self.index <= self.of <= _MOST_SHARDS:
            raise ValueError(f"there is no {self}")

    def __str__(self) -> str:
        return f"shard {self.index} of {self.of}"

    def cases(self, total: int) -> int:
        """How many of `total` cases belong to this shard."""
        return len(range(self.index - 1, total, self.of))

    def has(self, position: int) -> bool:
        """Whether the case at this position of the dataset belongs to this shard."""
        return position % self.of == self.index - 1

    def nth(self, position: int) -> int | None:
        """The place among this shard's cases, from 0, of the case at this position of the dataset; None if the shard
        does not have it."""
        return position // self.of if self.has(position) else None

    def position(self, nth: int) -> int:
        """The position in the dataset of this shard's case at this place."""
        return nth * self.of + self.index - 1


class Plan(msgspec.Struct):
    """One run: its cells and how they are judged."""

    run_id: str
    name: str
    dialect: str
    started_at: Annotated[datetime, msgspec.Meta(tz=True)]
    config_path: str
    config_hash: str
    cases_total: _Count
    variants: list[Variant]
    evaluators: list[EvaluatorSpec]
    pass_criteria: PassCriteria = PassCriteria()
    evaluators_by_case: bool = False
    """Cases bring their own evaluators instead of using the plan's."""
    gate: dict[str, Any] | None = None
    """The rule by which the whole run passes, instead of each of its cells: a tree of conditions, which `scoring`
    evaluates, or `{kind: claims, claims: [...], conditions: tree}` with what must be shown for the run as a whole."""
    run: RunSettings = RunSettings()
    import_paths: list[str] = []
    """Folders from which user code may be imported, in this order."""
    metadata: dict[str, Any] = {}
    store: Plugin = Plugin("local_files")
    """Where the run is kept: the first entry of `output`."""
    mirrors: list[Plugin] = []
    """Further entries of `output`: they receive a copy of what is stored; their failures never stop a run."""
    exports: list[Plugin] = []
    """Result files of other programs, written whenever a session of the run ends."""
    workspace: Plugin | None = None
    prices: dict[str, Price] = {}
    until_decided: UntilDecided | None = None
    totals: str = ""
    """The format that gives the summary its totals and decides the gate; by default `dialect`."""
    evaluator_digests: dict[str, str] = {}
    """By evaluator, the hash of what determines its verdicts, made before secrets were masked."""
    score_rules: dict[str, ScoreRule] = {}
    """By evaluator; absent where the type declares nothing: scores are then from 0 to 1, or from no known range."""
    files: dict[str, str] = {}
    """SHA-256 (hex) of each file used when the run began: the suite, its dataset, its code, and so on."""
    warnings: list[str] = []
    """What is valid in the suite and its cases but probably a mistake: one line each, with file, line and key."""
    shard: Shard | None = None
    """Only these cells are run here; the cases and everything else are the whole run's."""
    cases_sha256: str = ""
    """SHA-256 (hex) of the cases as stored; the seal covers it together with the plan."""
    seal: str = ""
    """Stored: a hash of what the run executes, made with a key that only the user's account has. Read: empty if another
    user made the run, or if its plan was changed."""
    schema_version: str = "1.0"

    @property
    def has_list_prices(self) -> bool:
        """Whether models without an entry in the price table cost the list price; not so in evalh's own suites."""
        return not any(variant.evalh_rules for variant in self.variants)

    @property
    def needs_verdicts(self) -> bool:
        """Whether only the stored verdict has the outcome of a cell: the pass criteria and its results do not
        suffice if each case brings its own evaluators, or if scores are weighed."""
        return self.evaluators_by_case or self.pass_criteria.rule != "evaluators"

    def trials_of(self, variant: Variant) -> int:
        """How many times each case is run on a variant."""
        return variant.trials or self.run.trials

    def lowest_passing(self, evaluator: str) -> float | None:
        """The lowest score with which a result of this evaluator passes; None if no score, or no single one, decides.

        The suite can name it for any evaluator, else the evaluator's type says it.
        """
        spec = next((evaluator_spec for evaluator_spec in self.evaluators if evaluator_spec.name == evaluator), None)
        if spec is not None and spec.threshold is not None:
            return spec.threshold if spec.threshold_op == "gte" else None
        rule = self.score_rules.get(evaluator)
        return None if rule is None else rule.passes_from

    @property
    def trials_by_variant(self) -> dict[str, int]:
        """How many times each case is run, by the names of the variants."""
        return {variant.name: self.trials_of(variant) for variant in self.variants}

    @property
    def cases_planned(self) -> int:
        """How many cases are run here: those of its shard, if it is one."""
        return self.cases_total if self.shard is None else self.shard.cases(self.cases_total)

    @property
    def cells_planned(self) -> int:
        """How many cells are run here."""
        return self.cases_planned * sum(map(self.trials_of, self.variants))
