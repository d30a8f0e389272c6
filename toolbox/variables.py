"""Replace `${NAME}` in the operator's file by what the worker's environment holds."""

import re
from collections.abc import Mapping

from backstay.errors import ToolboxInvalid

_REFERENCE = re.compile(r"\$\{([^}]*)\}?")
_NAME = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_PUBLIC = frozenset({"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "PWD", "TMPDIR", "LANG"})
_SECRET_NAME = re.compile(r"token|secret|passw|api.?key|private.?key|credential|authorization|cookie", re.IGNORECASE)


class Variables:
    """Resolve references and remember which values must never be shown."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._secrets: set[str] = set()

    @property
    def secrets(self) -> frozenset[str]:
        """Return the values of at least 8 bytes that a redactor must know."""
        return frozenset(value for value in self._secrets if len(value.encode("utf-8", "surrogatepass")) >= 8)

    def resolve(self, text: str, field: str) -> str:
        """Return the text with every `${NAME}`, `${env:NAME}` and `${NAME:-default}` replaced.

        Raises ToolboxInvalid naming the field and the variable that is missing.
        """
        return _REFERENCE.sub(lambda found: self._value(found, field), text)

    def resolve_named(self, values: Mapping[str, str], field: str) -> dict[str, str]:
        """Resolve a mapping; a value under a secret-looking name is a secret even when it is written out."""
        resolved = {name: self.resolve(text, f"{field}.{name}") for name, text in values.items()}
        for name, value in resolved.items():
            if _SECRET_NAME.search(name):
                self._secrets |= {value, value.rpartition(" ")[2]}
        return resolved

    def _value(self, found: "re.Match[str]", field: str) -> str:
        parsed = _NAME.fullmatch(found[1]) if found[0].endswith("}") else None
        if parsed is None:
            raise ToolboxInvalid(f"{field}: {found[0][:60]!r} is no reference; write ${{NAME}} or ${{NAME:-default}}")
        name: str = parsed[1]
        default: str | None = parsed[2]
        value = self._environment.get(name, default)
        if value is None:
            raise ToolboxInvalid(f"{field}: the environment variable {name} is not set; set it where the worker starts")
        if name not in _PUBLIC:
            self._secrets.add(value)
        return value
