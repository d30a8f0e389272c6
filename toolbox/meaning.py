"""Rank tools by what they mean, with word vectors that lie inside an installed wheel: nothing is ever fetched."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from toolbox.definition import Definition
from toolbox.naming import words_of

_DESCRIBED = 200
"""So much of a description says what a tool is for; the rest is about how to call it."""
_CHUNK = 1000
_WORDS = 0.3
_PROVIDER = 0.3


class Meaning:
    """Hold one direction per tool: of its name, of its name with its description, and a little of its provider's."""

    def __init__(self, definitions: Sequence[Definition]) -> None:
        names = _sums([f"{one.provider} {' '.join(words_of(one.mcp_name))}" for one in definitions])
        described = names + _sums([one.description[:_DESCRIBED] for one in definitions])
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
        scores *= (1 - _WORDS) / max(float(scores.max()), 1e-6)
        if by_words:
            found = numpy.array([place for place, _ in by_words])
            scores[found] += numpy.array([score for _, score in by_words]) * (_WORDS / max(by_words[0][1], 1e-6))
        scores = scores.round(5)
        best = numpy.argsort(-scores, kind="stable")[:limit]
        return [int(place) for place in best if scores[place] > 0]


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
    """Return for each text the sum of its tokens' vectors."""
    tokenizer, vectors = _vectors()
    plain = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
    summed = numpy.zeros((len(texts), vectors.shape[1]), dtype=numpy.float32)
    for start in range(0, len(texts), _CHUNK):
        tokens = [one.ids for one in tokenizer.encode_batch_fast(plain[start : start + _CHUNK], add_special_tokens=False)]
        filled = [place for place, ids in enumerate(tokens) if ids]
        if filled:
            flat = numpy.concatenate([tokens[place] for place in filled])
            begins = numpy.cumsum([0, *(len(tokens[place]) for place in filled[:-1])])
            chosen = vectors[flat].astype(numpy.float32)
            summed[[start + place for place in filled]] = numpy.add.reduceat(chosen, begins, axis=0)
    return summed


def _unit(vectors: Any) -> Any:
    return vectors / numpy.maximum(numpy.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)
