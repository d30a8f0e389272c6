"""The little grammar of the templates: every `{verb:argument}` becomes drawn text, other braces stay as they are."""

import json
import re
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import yaml

from tests.redaction.made_values import MADE, armour, jwt, password, pem

FOLDER = Path(__file__).parent
SLOT = re.compile(r"\{(?P<verb>[A-Za-z0-9]+):(?P<argument>[^{}]*)\}")
NUMBER = re.compile(r"\{int:(\d+)-(\d+)\}")
CLASSES = {
    "alnum": string.ascii_letters + string.digits,
    "letters": string.ascii_letters,
    "lower": string.ascii_lowercase,
    "upper": string.ascii_uppercase,
    "loweralnum": string.ascii_lowercase + string.digits,
    "upperalnum": string.ascii_uppercase + string.digits,
    "digits": string.digits,
    "hex": "0123456789abcdef",
    "HEX": "0123456789ABCDEF",
    "base32": string.ascii_uppercase + "234567",
    "base64": string.ascii_letters + string.digits + "+/",
    "base64url": string.ascii_letters + string.digits + "-_",
    "word": string.ascii_letters + string.digits + "_",
}
FUNCTIONS = {"armour": armour, "jwt": jwt, "password": password, "pem": pem}


@cache
def read(name: str) -> Any:
    """Read one YAML file that stands beside this module."""
    return yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Filler:
    """Fills templates from one source of chance; `slots` are the texts for `{put:...}`."""

    generator: Random
    slots: Mapping[str, str] = field(default_factory=dict)

    def text(self, template: str) -> str:
        """Fill one text."""
        return SLOT.sub(self._drawn, template)

    def payload(self, node: Any) -> Any:
        """Fill a template of dicts, lists and strings, and turn what stands under `json_text` into a string of JSON."""
        match node:
            case {"json_text": inner}:
                return json.dumps(self.payload(inner))
            case {"parsed": slot}:
                return json.loads(self.slots[slot])
            case dict():
                return {self.text(str(key)): self.payload(value) for key, value in node.items()}
            case list():
                return [self.payload(value) for value in node]
            case str() if bounds := NUMBER.fullmatch(node):
                return self.generator.randint(int(bounds[1]), int(bounds[2]))
            case str():
                return self.text(node)
            case _:
                return node

    def _drawn(self, slot: re.Match[str]) -> str:
        verb, argument = slot["verb"], slot["argument"]
        if verb in CLASSES:
            return self._characters(CLASSES[verb], argument)
        if verb == "of":
            alphabet, length = argument.split(",")
            return self._characters(alphabet, length)
        if verb in FUNCTIONS:
            return FUNCTIONS[verb](self.generator, argument)
        match verb:
            case "put":
                return self.slots[argument]
            case "pick":
                return self.generator.choice(read("words.yaml")[argument])
            case "made":
                return MADE[argument](self.generator)
            case "int":
                least, most = argument.split("-")
                return str(self.generator.randint(int(least), int(most)))
            case _:
                return slot[0]

    def _characters(self, alphabet: str, length: str) -> str:
        least, _, most = length.partition("-")
        count = self.generator.randint(int(least), int(most or least))
        return "".join(self.generator.choices(alphabet, k=count))
