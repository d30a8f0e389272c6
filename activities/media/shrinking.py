"""Decode one picture and make it fit; run as a script of its own, because decoders read what strangers wrote.

argv: the longest side, the most bytes, the most pixels. The picture comes on stdin, and one that fits goes to stdout;
nothing does where it fits as it is. A picture that cannot be decoded ends with code 3.
"""

import io
import sys
import warnings

from PIL import Image, ImageOps

_FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
_QUALITIES = (85, 70, 50)
_UNREADABLE = 3


def main() -> int:
    """Write the picture as it fits, and return the exit code."""
    side, most, pixels = (int(given) for given in sys.argv[1:4])
    warnings.simplefilter("error", Image.DecompressionBombWarning)
    Image.MAX_IMAGE_PIXELS = pixels
    data = sys.stdin.buffer.read()
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            image.load()
            if max(image.size) > side or len(data) > most:
                sys.stdout.buffer.write(_fitted(image, side, most))
    except Exception:  # a decoder raises whatever it likes
        return _UNREADABLE
    return 0


def _fitted(given: Image.Image, side: int, most: int) -> bytes:
    image: Image.Image = ImageOps.exif_transpose(given)
    image = image.convert("RGBA" if image.has_transparency_data else "RGB")
    image.thumbnail((side, side))
    written = _written(image, "PNG") if given.format != "JPEG" else b""
    if written and len(written) <= most:
        return written
    flat = Image.new("RGB", image.size, "white")
    flat.paste(image, mask=image.getchannel("A") if image.mode == "RGBA" else None)
    for quality in _QUALITIES:
        written = _written(flat, "JPEG", quality=quality)
        if len(written) <= most:
            break
    return written


def _written(image: Image.Image, form: str, **options: int) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


if __name__ == "__main__":
    sys.exit(main())
