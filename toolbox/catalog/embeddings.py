"""Rank tools by meaning, with word vectors from an installed wheel; nothing is ever downloaded.

All tools are ranked by one direction each. The first are ranked anew, word by word: by how near the nearest of a tool's
words comes to each word of the query, of which rare ones count more.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import accumulate, chain
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
"""A tool less than half as near as the nearest is not a match, unless it shares a word with the query."""
_NEARNESS = 60.0
"""What a cosine counts beside a score of BM25: how near a tool is, and how much its words tell, are added up."""
_LEAST = 1e-3
_PARAMETERS = 0.3
"""What the name of a parameter counts beside a word of the description."""
_MOST_PARAMETERS = 60
_FIRST = 32
"""How many tools are ranked word by word."""
_WORD_BY_WORD = 20.0
"""What it counts beside a score of BM25 that each word of the query is found in a tool."""
_UNKNOWN = 4.0
"""What a word of the query counts that no tool has: as much as one that one tool of fifty has."""


class Embeddings:
    """Hold one direction per tool: that of the words of its provider, its name, its description and its parameters."""

    def __init__(self, definitions: Sequence[Definition]) -> None:
        texts = [_words_of(definition) for definition in definitions]
        parameters = [_parameters_of(definition) for definition in definitions]
        known = {word: place for place, word in enumerate(dict.fromkeys(chain(*texts, *parameters)))}
        vectors = _vectors_of(list(known))
        places = [[known[word] for word in text] for text in texts]
        named = [[known[word] for word in names] for names in parameters]
        self._tools = _unit(_sums(places, vectors) + _PARAMETERS * _sums(named, vectors))
        self._words = _Words(known, places, vectors)

    def ranked(
        self, query: str, telling: Sequence[str], by_words: Sequence[tuple[int, float]], limit: int
    ) -> list[int]:
        """Return the places of the tools nearest to a query and to its telling words, best first."""
        asked = list(dict.fromkeys(words_of(query)))[:_WORDS_OF_A_QUERY]
        vectors = _vectors_of(asked)
        scores = self._tools @ _unit(vectors.sum(axis=0, keepdims=True))[0]
        kept = scores >= max(_NEAR * float(scores.max()), 1e-6)
        scores = np.maximum(scores * _NEARNESS, _LEAST)
        if by_words:
            found = np.array([place for place, _ in by_words])
            scores[found] += np.array([score for _, score in by_words])
            kept[found] = True
        scores[~kept] = 0
        first = _first(scores.round(3))
        first = first[kept[first]]
        told = [place for place, word in enumerate(asked) if word in telling]
        if told and len(first):
            scores[first] += _WORD_BY_WORD * self._words.found([asked[place] for place in told], vectors[told], first)
        scores = scores.round(3)
        limit = min(limit, len(scores))
        least = max(float(np.partition(scores, -limit)[-limit]), _LEAST)
        near = np.flatnonzero(scores >= least)
        return [int(place) for place in near[np.argsort(-scores[near], kind="stable")][:limit]]


def _first(scores: Any) -> Any:
    """Return the places of the highest scores, in any order."""
    least = np.partition(scores, -_FIRST)[-_FIRST] if len(scores) > _FIRST else 0
    return np.flatnonzero(scores >= least)


class _Words:
    """Hold the words of each tool, to find in them what is nearest to a word that is asked for."""

    def __init__(self, known: Mapping[str, int], places: Sequence[Sequence[int]], vectors: Any) -> None:
        self._known = known
        self._vectors = _unit(vectors)
        self._of_tools = [np.unique(np.array(words, dtype=np.int32)) for words in places]
        spread = np.bincount(np.concatenate([np.zeros(0, dtype=np.int32), *self._of_tools]), minlength=len(known))
        self._rarity = np.log(1 + (len(places) - spread + 0.5) / (spread + 0.5))

    def found(self, words: Sequence[str], vectors: Any, tools: Any) -> Any:
        """Return for each of some tools the share of the words that is found in it, by what they mean."""
        inner = [self._of_tools[tool] for tool in tools]
        starts = [0, *accumulate(map(len, inner[:-1]))]
        # Tools share many words: each is looked at once.
        seen, places = np.unique(np.concatenate(inner), return_inverse=True)
        near = self._vectors[seen] @ _unit(vectors).T
        best = np.maximum(np.maximum.reduceat(near[places], starts, axis=0), 0).T
        weights = np.array([self._rarity[self._known[word]] if word in self._known else _UNKNOWN for word in words])
        return weights @ best / weights.sum()


def _words_of(definition: Definition) -> list[str]:
    named = [*words_of(definition.provider), *words_of(definition.mcp_name)]
    return [*named, *words_of(definition.description[:_CHARACTERS])[:_DESCRIBED]]


def _parameters_of(definition: Definition) -> list[str]:
    properties = definition.parameters.get("properties")
    return words_of(" ".join(map(str, properties)))[:_MOST_PARAMETERS] if isinstance(properties, dict) else []


@cache
def _vectors() -> tuple[Any, Any]:
    """Return the tokenizer and the vector of each of its tokens, without running any code of the wheel they lie in."""
    found = find_spec("wordllama")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("wordllama is not installed; install backstay[search]")
    wheel = Path(found.submodule_search_locations[0])
    tokenizer = Tokenizer.from_file(str(wheel / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    return tokenizer, load_file(str(wheel / "weights" / "l2_supercat_256.safetensors"))["embedding.weight"]


def _sums(texts: Sequence[Sequence[int]], vectors: Any) -> Any:
    """Return for each list of places of words the sum of their vectors."""
    # The longest first: so each round adds the next word of all texts that still have one, in one go.
    order = sorted(range(len(texts)), key=lambda place: len(texts[place]), reverse=True)
    summed = np.zeros((len(texts), vectors.shape[1]), dtype=np.float32)
    ordered = [texts[place] for place in order]
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
