"""The names that users' code imports from eval_harness, evalh's package: records, settings, base classes,
evaluators."""
