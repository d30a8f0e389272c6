"""How many pages and how much text PDFs have, those of usual writers and those that are made to look small."""

import base64
import zlib

import pytest

from activities.endpoints.sight import Sight
from backstay.task.media import MOST_PAGES, media_of
from tests.requirements import promise

CATALOG = b"<< /Type /Catalog /Pages 2 0 R >>"
PAGE = b"<< /Type /Page /Parent 2 0 R /Contents 4 0 R >>"
WORDS = b"word " * 2_000
SHOWN = b"BT (" + WORDS + b") Tj ET"
SIZE = len(WORDS) + 1


def tree(kids=b"3 0 R", count=b"/Count 1"):
    return b"<< /Type /Pages " + count + b" /Kids [" + kids + b"] >>"


def stream(data, about=b"", *, packed=True):
    data = zlib.compress(data) if packed else data
    how = b"/Filter /FlateDecode " if packed else b""
    return b"<< /Length %d " % len(data) + how + about + b" >>\nstream\n" + data + b"\nendstream"


def coded(data):
    written = base64.a85encode(zlib.compress(data)) + b"~>"
    return b"<< /Filter [/ASCII85Decode /FlateDecode] >>\nstream\n" + written + b"\nendstream"


def pdf(*objects, first=1):
    written = (b"%d 0 obj\n" % n + each + b"\nendobj\n" for n, each in enumerate(objects, first))
    return b"%PDF-1.7\n" + b"".join(written) + b"trailer << /Root 1 0 R >>\n%%EOF\n"


def packed(*objects, first, about=b""):
    """Return a stream that holds these objects."""
    places = [sum(len(each) + 1 for each in objects[:n]) for n in range(len(objects))]
    head = b" ".join(b"%d %d" % (n, place) for n, place in enumerate(places, first)) + b" "
    about = about or b"/Type /ObjStm /N %d /First %d" % (len(objects), len(head))
    return stream(head + b" ".join(objects), about)


LETTER = pdf(CATALOG, tree(), PAGE, stream(SHOWN))
PICTURE = stream(b"(" * 90_000, b"/Subtype /Image /Width 300 /Height 300")
PHOTO = b"<< /Subtype /Image /Filter /DCTDecode /Length 9000 >>\nstream\n" + b"(<" * 4_500 + b"\nendstream"
TITLE = b"<< /Title (50% of it \\(a half\\), or (more) endobj /Kids [9 0 R]) >>"
HONEST = {
    "a letter": (LETTER, 1, SIZE),
    "written as it is": (pdf(CATALOG, tree(), PAGE, stream(SHOWN, packed=False)), 1, SIZE),
    "written in letters": (pdf(CATALOG, tree(), PAGE, coded(SHOWN)), 1, SIZE),
    "with pictures": (pdf(CATALOG, tree(), PAGE, stream(SHOWN), PICTURE, PHOTO), 1, SIZE),
    "with a font": (pdf(CATALOG, tree(), PAGE, stream(SHOWN), stream(b"(\xff" * 40_000, b"/Length1 80000")), 1, SIZE),
    "in a stream of objects": (pdf(stream(SHOWN), packed(CATALOG, tree(), PAGE, first=1), first=4), 1, SIZE),
    "of two nodes": (
        pdf(CATALOG, tree(b"5 0 R 6 0 R", b"/Count 3"), PAGE, stream(SHOWN), tree(), tree(b"7 0 R 8 0 R"), PAGE, PAGE),
        3,
        3 * SIZE,
    ),
    "changed later": (LETTER + pdf(tree(b"3 0 R 9 0 R", b"/Count 2"), first=2) + pdf(PAGE, first=9), 2, 2 * SIZE),
    "with an odd title": (pdf(CATALOG, tree(), PAGE, stream(SHOWN), TITLE), 1, None),
    "with bookmarks": (pdf(CATALOG, tree(), PAGE, stream(SHOWN), b"<< /Type /Outlines /Count 400 >>"), 1, SIZE),
    "linearized": (pdf(PAGE, stream(SHOWN), first=3) + pdf(CATALOG, tree()), 1, SIZE),
}
"""By name: the file, its pages, and the bytes of its text."""


@promise("models:pdf-counted")
@pytest.mark.parametrize("name", HONEST)
def test_pdfs_of_usual_writers_are_counted(name):
    data, pages, text = HONEST[name]
    media = media_of(data, "application/pdf")
    assert (media.fault, media.pages) == ("", pages)
    assert text is None or media.text == text
    # A letter is reserved by its page, not by what is left in it of fonts and pictures.
    assert Sight().worst(media) <= 12_000 * pages


FORM = stream(SHOWN, b"/Subtype /Form")
LARGE = {
    "text of one page": (pdf(CATALOG, tree(), PAGE, stream(SHOWN * 92)), 920_000),
    "text that says it is a picture": (pdf(CATALOG, tree(), PAGE, stream(SHOWN * 92, b"/Subtype /Image")), 920_000),
    "hexadecimal": (pdf(CATALOG, tree(), PAGE, stream(b"<" + b"41" * 92_000 + b"> Tj")), 92_000),
    "brackets in brackets": (pdf(CATALOG, tree(), PAGE, stream(b"(" * 40_000 + b")" * 40_000)), 79_999),
    "a string in two parts": (
        pdf(CATALOG, tree(), PAGE.replace(b"4 0 R", b"[4 0 R 5 0 R]"), stream(b"(a"), stream(b"a" * 50_000)),
        50_000,
    ),
    "a stream shown often": (
        pdf(CATALOG, tree(), PAGE.replace(b"4 0 R", b"[" + b"4 0 R " * 50 + b"]"), stream(SHOWN)),
        50 * len(WORDS),
    ),
    "a form drawn often": (pdf(CATALOG, tree(), PAGE, stream(b"/F Do " * 50), FORM), 50 * len(WORDS)),
    "forms in forms": (
        pdf(
            *(CATALOG, tree(), PAGE, stream(b"/F Do")),
            *(stream(b"/F Do /F Do", b"/Subtype /Form /Uses %d 0 R" % below) for below in range(6, 12)),
            *(b"null", FORM),
        ).replace(b"/Uses 11 0 R", b"/Uses 12 0 R"),
        64 * len(WORDS),
    ),
    "long letters": (
        pdf(
            *(CATALOG, tree(), PAGE, stream(SHOWN), b"<< /Type /Font /ToUnicode 6 0 R >>"),
            stream(b"begincmap 1 beginbfchar <01> <" + b"0041" * 100 + b"> endbfchar"),
        ),
        25 * len(WORDS),
    ),
    "escaped names": (
        pdf(
            *(CATALOG, tree(b"5 0 R " + b" ".join(b"%d 0 R" % n for n in range(6, 95)), b"/#43ount 90")),
            *(b"null", stream(SHOWN), *[PAGE.replace(b"/Page", b"/#50age")] * 90),
        ),
        90 * 12_000,
    ),
}
"""By name: the file, and the tokens that are reserved at least."""


@promise("models:pdf-counted")
@pytest.mark.parametrize("name", LARGE)
def test_a_file_that_looks_small_is_reserved_by_all_that_it_can_show(name):
    data, tokens = LARGE[name]
    media = media_of(data, "application/pdf")
    assert media.fault == ""
    assert Sight().worst(media) >= tokens


WRONG = {
    "fewer than it has": (pdf(CATALOG, tree(b"3 0 R 5 0 R"), PAGE, stream(SHOWN), PAGE), "says that it has 1 pages"),
    "a page twice": (pdf(CATALOG, tree(b"3 0 R 3 0 R", b"/Count 2"), PAGE, stream(SHOWN)), "lists a page twice"),
    "a tree in a circle": (pdf(CATALOG, tree(b"2 0 R")), "in two places"),
    "too many": (
        pdf(
            CATALOG,
            tree(b" ".join(b"%d 0 R" % n for n in range(5, 106)), b"/Count 101"),
            b"null",
            stream(b""),
            *[PAGE] * 101,
        ),
        f"it has 101 pages, and {MOST_PAGES} are the most",
    ),
    "no tree": (pdf(PAGE), "it has no page tree"),
    "a tree that is not there": (pdf(CATALOG), "object 2 is missing"),
    "a tree in place": (pdf(b"<< /Pages << /Kids [3 0 R] >> >>", tree(), PAGE, stream(SHOWN)), "is unclear"),
    "a comment in a head": (LETTER + b"2 %x\n0 obj << /Kids [3 0 R 4 0 R] >> endobj", "head of an object is unclear"),
    "an unknown filter": (pdf(CATALOG, tree(), PAGE, stream(SHOWN, b"/Filter /LZWDecode", packed=False)), "LZWDecode"),
    "objects that cannot be read": (
        LETTER + pdf(stream(b"1 0 null", b"/Type /ObjStm /N 1 /First 4").replace(b"stream\nx", b"stream\n?"), first=9),
        "cannot be read",
    ),
    "objects with a predictor": (
        LETTER + pdf(packed(PAGE, first=20, about=b"/Type /ObjStm /First 5 /DecodeParms <<>>"), first=9),
        "cannot be read",
    ),
    "a bomb": (pdf(CATALOG, tree(), PAGE, stream(b"a" * 33_000_000)), "inflate to more than 32,000,000 bytes"),
    "a stream that is cut": (pdf(CATALOG, tree(), PAGE, stream(SHOWN)[:60]), "cannot be read"),
    "a form that draws itself": (
        pdf(CATALOG, tree(), PAGE, stream(b"/F Do"), stream(b"/F Do", b"/Subtype /Form /Uses 6 0 R"))
        + pdf(stream(b"/F Do", b"/Subtype /Form /Uses 5 0 R"), first=6),
        "draws itself",
    ),
}


@promise("models:pdf-counted")
@pytest.mark.parametrize("name", WRONG)
def test_a_file_whose_pages_are_not_certain_is_refused_and_says_why(name):
    data, why = WRONG[name]
    assert why in media_of(data, "application/pdf").fault
