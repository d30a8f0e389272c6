"""Write the table of errors in docs/reference-events.md as the code has them. python -m docs.generate_reference."""

from pathlib import Path

from backstay import errors
from backstay.errors import BackstayError, Final, Transient

PAGE = Path(__file__).parent / "reference-events.md"
BEGIN, END = "<!-- errors: begin -->", "<!-- errors: end -->"
_ROOTS = {BackstayError, Final, Transient}


def written(page: str) -> str:
    """Return the page with the table of all errors between its marks. Raises ValueError if it has lost them."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name} has lost its marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{_table()}\n\n{END}{after}"


def _table() -> str:
    known = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, BackstayError)]
    rows = [_row(kind) for kind in sorted(known, key=lambda kind: not kind.final) if kind not in _ROOTS]
    return "\n".join(["| error | kind | meaning |", "|---|---|---|", *rows])


def _row(kind: type[BackstayError]) -> str:
    meaning = (kind.__doc__ or "").strip().splitlines()[0].rstrip(".")
    return f"| `{kind.__name__}` | {'final' if kind.final else 'transient'} | {meaning} |"


def main() -> None:
    """Bring the page up to date."""
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
