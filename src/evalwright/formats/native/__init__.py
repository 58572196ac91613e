"""The native format: `eval.yaml`.

It is the format of evalh (eval-harness 2.0) with additions, which docs/eval-yaml.md marks as *ours*.
"""

from evalwright.model.format import ALLOW_OUTSIDE, Format

__all__ = ["FORMAT"]

FORMAT = Format(
    name="native",
    title="native",
    summary="The suite in `eval.yaml`: systems, evaluators and a dataset.",
    docs="docs/eval-yaml.md",
    suffixes=(".yaml", ".yml", ".json"),
    keys=(frozenset({"eval"}), frozenset({"dataset", "systems"})),
    original="evalh",
    load="evalwright.formats.native.suite:load",
    options=(ALLOW_OUTSIDE,),
    names_in="evalwright.formats.native.conversion:names_in",
    unread="evalwright.formats.native.conversion:unread",
    write="evalwright.formats.native.writer:write_native",
    adopt_run="evalwright.formats.native.suite:adopt_run",
)
