"""Tell whether a body that came over HTTP is compressed."""

_COMPRESSES = frozenset({"br", "compress", "dcb", "dcz", "deflate", "gzip", "x-compress", "x-gzip", "zstd"})


def compressions_of(encoding: str) -> tuple[str, ...]:
    """Return the codings of a `Content-Encoding` that compress.

    Servers also write `none`, a charset or nothing there, and send the body as it is.
    """
    return tuple(coding for part in encoding.split(",") if (coding := part.strip().lower()) in _COMPRESSES)
