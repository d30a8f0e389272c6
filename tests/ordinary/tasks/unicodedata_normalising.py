# result: {"plain": "Zoe Muller-Angstrom", "slug": "zoe-muller-angstrom", "names": ["LATIN SMALL LETTER E WITH ACUTE", "EURO SIGN"], "lookup": "π", "categories": ["Lu", "Nd", "Zs", "Pd"], "value": 0.5, "width": ["Na", "W"], "sorted": ["apfel", "Äpfel", "zebra"]}
import unicodedata

name = "Zoë Müller-Ångström"
plain = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
return {
    "plain": plain,
    "slug": plain.lower().replace(" ", "-"),
    "names": [unicodedata.name(c) for c in "é€"],
    "lookup": unicodedata.lookup("GREEK SMALL LETTER PI"),
    "categories": [unicodedata.category(c) for c in "A1 -"],
    "value": unicodedata.numeric("½"),
    "width": [unicodedata.east_asian_width(c) for c in "aあ"],
    "sorted": sorted(["zebra", "Äpfel", "apfel"], key=lambda s: unicodedata.normalize("NFKD", s).casefold()),
}
