"""From a variant to the target that answers for it."""

from __future__ import annotations

from collections.abc import Sequence

from evalwright.model.plan import Variant
from evalwright.model.protocols import Target, Traits
from evalwright.registry import load
from evalwright.session import import_from

__all__ = ["build_target", "target_traits"]


def build_target(variant: Variant, import_paths: Sequence[str]) -> Target:
    """The target of `variant`, its configuration checked and its code imported, but nothing called yet.

    Raises InputError whose keys are relative to the variant (`target`, `init_kwargs`).
    """
    import_from(import_paths)
    target: Target = load("targets", variant.adapter)(variant)
    return target


def target_traits(target: object) -> Traits:
    """What a target declares about itself, or what is registered for one: of the traits it has `asks` only."""
    return Traits(asks=getattr(target, "asks", None))
