"""Rank tools by meaning, with word vectors from an installed wheel; nothing is ever downloaded."""

from collections import defaultdict
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

_DESCRIBED = 200
"""How many characters of a description are used; the rest is about how to call the tool."""
_WORDS_OF_A_TEXT = 200
_NEAR = 0.5
"""A tool less than half as near as the nearest is no match, unless it shares a word with the query."""
_WORDS = 0.3
_PROVIDER = 0.5


class Embeddings:
    """Hold one direction per tool: of its name, of its name with its description, and a little of its provider's."""

    def __init__(self, definitions: Sequence[Definition]) -> None:
        texts = [f"{definition.provider} {' '.join(words_of(definition.mcp_name))}" for definition in definitions]
        texts += [definition.description[:_DESCRIBED] for definition in definitions]
        names, descriptions = np.split(_sums(texts), 2)
        described = names + descriptions
        tools = (_unit(names) + _unit(described)) / 2
        places: defaultdict[str, list[int]] = defaultdict(list)
        for place, definition in enumerate(definitions):
            places[definition.provider].append(place)
        self._tools = tools.copy()
        for members in places.values():
            self._tools[members] += _PROVIDER * tools[members].mean(axis=0)

    def ranked(self, query: str, by_words: Sequence[tuple[int, float]], limit: int) -> list[int]:
        """Return the places of the tools nearest to the query by meaning and words, best first."""
        scores = self._tools @ _unit(_sums([query]))[0]
        nearest = max(float(scores.max()), 1e-6)
        kept = scores >= _NEAR * nearest
        scores *= (1 - _WORDS) / nearest
        if by_words:
            found = np.array([place for place, _ in by_words])
            scores[found] += np.array([score for _, score in by_words]) * (_WORDS / max(by_words[0][1], 1e-6))
            kept[found] = True
        scores[~kept] = 0
        scores = scores.round(5)
        limit = min(limit, len(scores))
        least = max(float(np.partition(scores, -limit)[-limit]), 1e-5)
        near = np.flatnonzero(scores >= least)
        return [int(place) for place in near[np.argsort(-scores[near], kind="stable")][:limit]]


@cache
def _vectors() -> tuple[Any, Any]:
    """Return the tokenizer and the vector of each of its tokens, without running any code of the wheel they lie in."""
    found = find_spec("wordllama")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("wordllama is not installed; install backstay[search]")
    wheel = Path(found.submodule_search_locations[0])
    tokenizer = Tokenizer.from_file(str(wheel / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    return tokenizer, load_file(str(wheel / "weights" / "l2_supercat_256.safetensors"))["embedding.weight"]


def _sums(texts: Sequence[str]) -> Any:
    """Return for each text the sum of its words' vectors."""
    words = [text.encode("utf-8", "replace").decode("utf-8").split()[:_WORDS_OF_A_TEXT] for text in texts]
    known = {word: place for place, word in enumerate(dict.fromkeys(chain.from_iterable(words)))}
    vectors = _vectors_of(list(known))
    # The longest first: so each round adds the next word of all texts that still have one, in one go.
    order = sorted(range(len(texts)), key=lambda place: len(words[place]), reverse=True)
    summed = np.zeros((len(texts), vectors.shape[1]), dtype=np.float32)
    ordered = [[known[word] for word in words[place]] for place in order]
    left = len(ordered)
    for at in range(len(ordered[0]) if ordered else 0):
        while len(ordered[left - 1]) <= at:
            left -= 1
        summed[:left] += vectors[[text[at] for text in ordered[:left]]]
    restored = np.empty_like(summed)
    restored[order] = summed
    return restored


def _vectors_of(words: list[str]) -> Any:
    tokenizer, vectors = _vectors()
    tokens = (token.ids for token in tokenizer.encode_batch_fast(words, add_special_tokens=False))
    each = [vectors[ids].sum(axis=0, dtype=np.float32) for ids in tokens]
    return np.array(each) if each else np.zeros((0, vectors.shape[1]), dtype=np.float32)


def _unit(vectors: Any) -> Any:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)
