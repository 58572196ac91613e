"""The tables of a run's cells: what is filtered, sorted and searched. Derived from the records; safe to delete."""

from __future__ import annotations

__all__ = ["INDEXES", "SCORED_STATUSES", "STATUSES", "TABLES", "TABLES_VERSION", "TRIAL_BITS", "VARIANT_BITS"]

TABLES_VERSION = 14
"""Increased with every change of the tables or their contents, so that older files are rebuilt."""

VARIANT_BITS, TRIAL_BITS = 12, 20
"""The lower bits of a cell's number, of which the upper ones are the position of its case."""

STATUSES = ("pass", "borderline", "fail", "error", "skip")
SCORED_STATUSES = ("pass", "fail", "error", "skip")
"""Those that cells of a suite with only scores can have."""

TABLES = """
CREATE TABLE cells (
    number INTEGER PRIMARY KEY, key TEXT, case_key TEXT, position INTEGER, variant TEXT, trial INTEGER, attempt INTEGER,
    status TEXT, score REAL, latency REAL, cost REAL, tokens INTEGER, duration REAL, error TEXT,
    failed TEXT, answer TEXT, flaky INTEGER DEFAULT 0, digest BLOB
);
CREATE TABLE outcomes (
    number INTEGER, evaluator TEXT, outcome TEXT, score REAL, PRIMARY KEY (number, evaluator)
) WITHOUT ROWID;
CREATE TABLE reasons (reason TEXT, number INTEGER, nth INTEGER, PRIMARY KEY (reason, number)) WITHOUT ROWID;
CREATE TABLE groups (reason TEXT PRIMARY KEY, text TEXT) WITHOUT ROWID;
CREATE TABLE inputs (position INTEGER PRIMARY KEY, text TEXT);
CREATE TABLE tags (tag TEXT, position INTEGER, PRIMARY KEY (tag, position)) WITHOUT ROWID;
CREATE TABLE metadata (
    name TEXT, value TEXT, position INTEGER, PRIMARY KEY (name, value, position)
) WITHOUT ROWID;
CREATE TABLE texts (number INTEGER PRIMARY KEY, text TEXT);
CREATE TABLE unread (note TEXT);
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
"""

INDEXES = """
CREATE UNIQUE INDEX by_key ON cells (key);
CREATE INDEX by_position ON cells (position);
CREATE INDEX by_case ON cells (case_key);
CREATE INDEX by_status ON cells (status, number);
CREATE INDEX by_variant ON cells (variant, number);
CREATE INDEX by_variant_status ON cells (variant, status);
CREATE INDEX by_latency ON cells (latency, number);
CREATE INDEX by_cost ON cells (cost, number);
CREATE INDEX by_tokens ON cells (tokens, number);
CREATE INDEX by_score ON cells (score, number);
CREATE INDEX by_duration ON cells (duration, number);
CREATE INDEX by_error ON cells (error, number) WHERE error IS NOT NULL;
CREATE INDEX by_flaky ON cells (number) WHERE flaky;
CREATE INDEX by_outcome ON outcomes (evaluator, outcome, number);
ANALYZE;
"""
