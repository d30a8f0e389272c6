"""Rank tools by meaning, with word vectors from an installed wheel; nothing is ever downloaded."""

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from toolbox.catalog.definition import Definition
from toolbox.catalog.naming import words_of

_DESCRIBED = 80
"""How many words of a description are used; the rest is about how to call the tool."""
_CHARACTERS = 8 * _DESCRIBED
_WORDS_OF_A_QUERY = 200
_NEAR = 0.5
"""A tool less than half as near as the nearest is no match, unless it shares a word with the query."""
_NEARNESS = 60.0
"""What a cosine counts beside a score of BM25: how near a tool is, and how much its words tell, are added up."""
_LEAST = 1e-3


class Embeddings:
    """Hold one direction per tool: that of the words of its provider, its name and its description."""

    def __init__(self, definitions: Sequence[Definition]) -> None:
        self._tools = _unit(_sums([_words_of(definition) for definition in definitions]))

    def ranked(self, query: str, by_words: Sequence[tuple[int, float]], limit: int) -> list[int]:
        """Return the places of the tools nearest to the query by meaning and words, best first."""
        asked = list(dict.fromkeys(words_of(query)))[:_WORDS_OF_A_QUERY]
        scores = self._tools @ _unit(_vectors_of(asked).sum(axis=0, keepdims=True))[0]
        kept = scores >= max(_NEAR * float(scores.max()), 1e-6)
        scores = np.maximum(scores * _NEARNESS, _LEAST)
        if by_words:
            found = np.array([place for place, _ in by_words])
            scores[found] += np.array([score for _, score in by_words])
            kept[found] = True
        scores[~kept] = 0
        scores = scores.round(3)
        limit = min(limit, len(scores))
        least = max(float(np.partition(scores, -limit)[-limit]), _LEAST)
        near = np.flatnonzero(scores >= least)
        return [int(place) for place in near[np.argsort(-scores[near], kind="stable")][:limit]]


def _words_of(definition: Definition) -> list[str]:
    named = [*words_of(definition.provider), *words_of(definition.mcp_name)]
    return [*named, *words_of(definition.description[:_CHARACTERS])[:_DESCRIBED]]


@cache
def _vectors() -> tuple[Any, Any]:
    """Return the tokenizer and the vector of each of its tokens, without running any code of the wheel they lie in."""
    found = find_spec("wordllama")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("wordllama is not installed; install backstay[search]")
    wheel = Path(found.submodule_search_locations[0])
    tokenizer = Tokenizer.from_file(str(wheel / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    return tokenizer, load_file(str(wheel / "weights" / "l2_supercat_256.safetensors"))["embedding.weight"]


def _sums(texts: Sequence[Sequence[str]]) -> Any:
    """Return for each list of words the sum of their vectors."""
    known = {word: place for place, word in enumerate(dict.fromkeys(chain.from_iterable(texts)))}
    vectors = _vectors_of(list(known))
    # The longest first: so each round adds the next word of all texts that still have one, in one go.
    order = sorted(range(len(texts)), key=lambda place: len(texts[place]), reverse=True)
    summed = np.zeros((len(texts), vectors.shape[1]), dtype=np.float32)
    ordered = [[known[word] for word in texts[place]] for place in order]
    left = len(ordered)
    for at in range(len(ordered[0]) if ordered else 0):
        while len(ordered[left - 1]) <= at:
            left -= 1
        summed[:left] += vectors[[text[at] for text in ordered[:left]]]
    restored = np.empty_like(summed)
    restored[order] = summed
    return restored


def _vectors_of(words: list[str]) -> Any:
    """Return a vector for each word, half way to one length: a long vector tells more, but not that much more."""
    tokenizer, vectors = _vectors()
    tokens = (token.ids for token in tokenizer.encode_batch_fast(words, add_special_tokens=False))
    each = np.array([vectors[ids].sum(axis=0, dtype=np.float32) for ids in tokens])
    if not words:
        return np.zeros((0, vectors.shape[1]), dtype=np.float32)
    return each / np.sqrt(np.maximum(np.linalg.norm(each, axis=1, keepdims=True), 1e-6))


def _unit(vectors: Any) -> Any:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)
