"""Embedders, which turn texts into vectors: two built-in ones, those of plug-ins, or the user's functions."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from evalwright.errors import InputError
from evalwright.model.chat import Embedding, EmbeddingRequest
from evalwright.registry import load, names
from evalwright.session import session
from evalwright.session.named_objects import named_object

__all__ = ["Embed", "embedder", "minilm", "openai_small"]

Embed = Callable[[Sequence[str]], Any]
"""Vectors in the order of the texts: a list of lists of numbers, an Embedding, or an awaitable of either."""

_MINILM = "sentence-transformers/all-MiniLM-L6-v2"
_lock = threading.Lock()


def embedder(name: str) -> Embed:
    """The embedder of that name, or the function at `module:attribute`. Raises InputError."""
    if ":" in name and name not in names("embedders"):
        return _function_at(name)  # not cached: another run may have another file by that name
    return _registered(name)


@cache
def _registered(name: str) -> Embed:
    try:
        factory = load("embedders", name)
    except InputError as error:
        raise InputError(f"{error}; or 'module:attribute' of a function of texts") from None
    return factory()  # type: ignore[no-any-return]


def _function_at(place: str) -> Embed:
    function = named_object(place, "embedder")
    if not callable(function):
        raise InputError(f"the embedder {place!r} is not a function")
    return function  # type: ignore[no-any-return]


def openai_small() -> Embed:
    """OpenAI's `text-embedding-3-small`, or the model of that name at OPENAI_BASE_URL."""

    return _ModelEmbedder("text-embedding-3-small")


class _ModelEmbedder:
    """Vectors from a model that the run calls."""

    def __init__(self, model: str) -> None:
        self.model = model

    async def __call__(self, texts: Sequence[str]) -> Embedding:
        return await session().models.embed(EmbeddingRequest(self.model, texts))


def minilm() -> Embed:
    """The local model `all-MiniLM-L6-v2`, loaded once, at the first call."""
    if importlib.util.find_spec("sentence_transformers") is None:
        raise InputError(f"{_MINILM} needs the extra: pip install 'evalwright[embeddings]'")
    return _minilm_vectors


@cache
def _minilm_model() -> Any:
    from sentence_transformers import SentenceTransformer  # type: ignore[import-not-found,unused-ignore]

    return SentenceTransformer(_MINILM)


def _minilm_vectors(texts: Sequence[str]) -> list[list[float]]:
    with _lock:  # the model is not safe for several threads at once
        return _minilm_model().encode(list(texts)).tolist()  # type: ignore[no-any-return]
