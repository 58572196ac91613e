"""What users' code imports of eval_harness, the package of evalh: records, settings, base classes, evaluators."""
