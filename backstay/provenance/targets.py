"""Recognise the arguments that say where a call goes: addresses, account numbers, paths, URLs and commands.

Both the shape of the value and the name of the argument count, and one of them is enough.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, Literal

from backstay.data_files import data_beside
from backstay.provenance.words import name_words

Shape = Literal["atom", "place", "name", "other"]
"""atom: an address or account number, which is one thing; place: a path, URL or command, which is put together; name:
what a call acts on, or makes of it, in a few words."""

SHORT = 200
"""In a longer text, or one of several lines, an address that stands somewhere makes no target."""
MOST_NAMED = 12
"""A value of more words is prose, and names nothing."""
_LONGEST_NAME = 120
(
    _ATOM_NAMES,
    _PLACE_NAMES,
    _CARRIED,
    _TOLD,
    _PLAIN,
    _MEETING,
    _HEADED,
    _COMMON,
    _PEOPLE,
    _CALLED,
    _QUANTITIES,
    _OUTWARD,
    _DOMAINS,
    _RECEIVERS,
    _PERSONS,
    _UNLISTED,
    _HEADINGS,
    _LISTS,
    _ENTRIES,
    _REMOVED,
    _FILES,
) = (frozenset[str](names.split()) for names in data_beside(__file__).values())
_TEXTS = _CARRIED | _TOLD
# The digest of an image is written with the same sign.
_EMAIL = re.compile(r"[^\s@<>,;:\"']{1,80}@(?!sha\d{3}:[0-9a-f]{6})[^\s@<>,;:\"']{1,120}")
_BARE, _BETWEEN = re.compile(rf"(?:mailto:)?<?{_EMAIL.pattern}>?", re.IGNORECASE), re.compile(r"[\s,;]+")
_URL = re.compile(r"[a-z][a-z0-9+.-]{1,20}://\S{1,180}|www\.\S{4,180}", re.IGNORECASE)
_HEADER = re.compile(r"[\r\n]\s{0,20}(?:to|cc|bcc|reply-to)\s{0,20}:", re.IGNORECASE)
_HOST = re.compile(r"://([^\s/?#]{1,180})")
_ACCOUNT = re.compile(
    r"(?<![A-Za-z0-9])(?:[A-Za-z]{2}\d{2}(?:[ -]?[A-Za-z0-9]{2,5}){2,9}|\+?\d(?:[ ().-]{0,2}\d){7,30})(?![A-Za-z0-9])"
)
_DIGIT = re.compile(r"\d")
_PATH = re.compile(r"(?:~|\.{1,2})?[/\\][^\s]{2,}|[A-Za-z]:[/\\]\S+|[\w.-]+(?:[/\\][\w.-]+)+")
_FILE = re.compile(r"[\w./\\-]*[\w-]\.[A-Za-z]\w{0,5}")
_TITLED = re.compile(r"[^<>@\n]{0,100}<([^<>\s]{1,200})>")
_WHOLE_URL = re.compile(r"[a-z][a-z0-9+.-]{1,20}://\S+|www\.\S{4,}", re.IGNORECASE)
_LISTED = re.compile(r"[^\s@<>,;:\"'()\[\]]{1,200}@[^\s@<>,;:\"'()\[\]]{1,255}")
_AMOUNT = re.compile(r"[-+]?[\d., ']{1,30}\s?(?:%|[A-Za-z]{1,4}|[^\w\s])?|[^\w\s]\s?[\d., ']{1,30}")
_DAY, _MONTH, _YEAR = r"(?:0?[1-9]|[12]\d|3[01])", r"(?:0?[1-9]|1[0-2])", r"(?:19|20|21)\d\d"
_CLOCK = r"(?:[01]?\d|2[0-4]):[0-5]\d(?::[0-5]\d(?:[.,]\d{1,9})?)?(?:\s?[ap]m)?(?:\s?Z|\s?[+-]\d\d:?\d\d)?"
_MONTHS = (
    "(?:Jan(?:uary)?|Feb(?:ruary)?|Apr(?:il)?|June?|July?|Aug(?:ust)?|Sept?(?:ember)?"
    "|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_MOMENT = re.compile(
    rf"(?<![\w.])(?=\d)(?:(?:{_YEAR}([-/.]){_MONTH}\1{_DAY}|{_DAY}([-/.]){_MONTH}\2{_YEAR}|{_MONTH}/{_DAY}/{_YEAR})"
    rf"(?:[T ]\s?{_CLOCK})?|{_YEAR}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])T\d{{4,6}}Z?|{_CLOCK})(?![\w])",
    re.IGNORECASE,
)
"""Dates and times as digits. Eight digits alone are none: they can be an account number."""
_DAY_OF_MONTH = re.compile(
    rf"(?<![\w.])(?:{_MONTHS}\.? {_DAY}(?:st|nd|rd|th)?|{_DAY}(?:st|nd|rd|th|\.)? {_MONTHS})(?!\w)"
)
"""A day of a month by its name; `May` and `March` are other words, too."""
_LIKE_MOMENT = re.compile(r"\d[-/.:]\d|\d\s?[ap]m|\dT\d", re.IGNORECASE)
_MONTH_NAME = re.compile(rf"\b{_MONTHS}\b")
"""Text without these has no date and no time in it; this is seen faster."""
_MOMENT_SIGNS = re.compile(r"[\W\d_tzapm]*", re.IGNORECASE)
"""Nothing with another letter is a date or a time; this is seen faster."""
MOST_WITHIN = 100
"""At most this many addresses and hosts in one value are looked at alone; of more, somebody must vouch for all."""
_OF_THINGS = frozenset({"email", "mail", "source", "target", "destination", "dest"})
_COMMIT = re.compile(r"(?=[0-9]*[a-f])[0-9a-f]{7,40}")
_WALLET = re.compile(r"(?=[A-Za-z]*\d)[A-Za-z0-9]{25,100}")
_PARCEL = re.compile(r"(?=[^\d]*\d)[A-Za-z0-9][A-Za-z0-9 -]{3,39}")
_TOPIC = 2
_TOKEN = re.compile(r"[#@]?\w[\w-]{3,63}", re.ASCII)
_HOST_NAME = re.compile(r"(?:[a-z0-9][a-z0-9-]{0,62}\.){2,8}[a-z]{2,24}", re.IGNORECASE)
"""Of three labels and more: of two, it could be the name of a file."""
_DOMAIN = re.compile(r"\.([^\W\d_]{2,24})(?![\w@(-]|\.\w)")
_LONGEST_HOST = 253
# Each begins with characters that are searched for fast.
_HOST_AFTER = (
    re.compile(r"www\.([^\s/?#.]{1,63}\.[^\s/?#]{1,180})"),
    re.compile(r"//(?<!:\/\/)(?<![\w/]//)([^\s/?#.]{1,63}\.[^\s/?#]{1,180})"),
)
"""The host of an e-mail address is none that a string leads to: a person who quotes a mail has many of these."""
_IN_NAMES = re.compile(r"[^\W_]+")


def shape_of(name: str, value: str) -> Shape:
    """Return what kind of target an argument is, by its name and its value."""
    text = value.strip()
    last, named = _named(name)
    if last in _CARRIED and _is_bare(text):
        # A note that is nothing but an address may well be taken for one.
        return _seen_in(text)
    if last in _CARRIED or (is_moment(text) and last not in _ATOM_NAMES | _PLACE_NAMES):
        return "other"
    if last in _QUANTITIES and _AMOUNT.fullmatch(text):
        return "other"
    if last in _HEADINGS and _ACCOUNT.search(text) and not is_address(text):
        # The number of an invoice or a flight, in words for people; other targets count in it as they did.
        text = _ACCOUNT.sub(" ", text)
    if (seen := _seen_in(text)) != "other":
        return seen
    if _HEADER.search(text):
        # A line that a mail server would read as one more recipient.
        return "atom"
    if last in _QUANTITIES:
        return "other"
    if last == "topic" and len(text.split()) > _TOPIC:
        # The topic of a channel; a topic that messages are sent to is one name.
        return "other"
    if named & _PLACE_NAMES or _HOST_NAME.fullmatch(text):
        return "place"
    if named & _ATOM_NAMES or _is_token(text):
        return "atom"
    return "name" if name and last not in _TOLD and _names_something(last, text) else "other"


def _names_something(last: str, text: str) -> bool:
    """Return whether a value may be the name of something: a few words on one line."""
    if len(text) > _LONGEST_NAME or "\n" in text or not any(map(str.isalpha, text)):
        return False
    found = _IN_NAMES.findall(text)
    # One letter is in every text.
    return (
        text[1:2] != ""
        and len(found) <= MOST_NAMED
        and (len(found) > 1 or not (last in _PLAIN or found[0].lower() in _COMMON))
    )


def _is_token(text: str) -> bool:
    """Return whether a value looks like the identifier of a thing, whatever the argument is called."""
    return bool(_TOKEN.fullmatch(text)) and any(map(str.isdigit, text)) and any(map(str.isalpha, text))


def _is_bare(text: str) -> bool:
    """Return whether a value is a URL or addresses, and nothing else."""
    if _WHOLE_URL.fullmatch(text):
        return True
    return "@" in text and len(text) <= SHORT and all(map(_BARE.fullmatch, _BETWEEN.split(text)))


def _seen_in(text: str) -> Shape:
    """Return what kind of target a value is by what it looks like."""
    if _WHOLE_URL.fullmatch(text):
        return "place"
    if len(text) > SHORT or "\n" in text:
        return "other"
    if _holds_a_url(text):
        return "place"
    if ("@" in text and _EMAIL.search(text)) or (_DIGIT.search(text) and _ACCOUNT.search(_MOMENT.sub(" / ", text))):
        return "atom"
    return "place" if _PATH.fullmatch(text) and not is_moment(text) else "other"


def _holds_a_url(text: str) -> bool:
    return ("://" in text or "www." in text.lower()) and _URL.search(text) is not None


def split_path(text: str) -> tuple[str, str] | None:
    """Return the folder and the name, without its ending, of the file that a path names; None for anything else."""
    if len(text) > SHORT or not _FILE.fullmatch(text):
        return None
    folder, _, name = text.replace("\\", "/").rpartition("/")
    return folder, name.rpartition(".")[0]


def is_address(text: str) -> bool:
    """Return whether a value is an e-mail address or an account number, and nothing else."""
    return len(text) <= SHORT and bool(_BARE.fullmatch(text) or (_ACCOUNT.fullmatch(text) and not is_moment(text)))


def address_in(text: str) -> str:
    """Return the address that a value is, with or without the name of whose it is; empty where it is none."""
    if "@" not in text and not _DIGIT.search(text):
        return ""
    bare = titled[1] if (titled := _TITLED.fullmatch(text)) else text
    return bare if is_address(bare) else ""


def without_moments(text: str) -> str:
    """Return a string without the dates and times in it."""
    if _LIKE_MOMENT.search(text):
        text = _MOMENT.sub(" ", text)
    return _DAY_OF_MONTH.sub(" ", text) if _MONTH_NAME.search(text) else text


def is_moment(text: str) -> bool:
    """Return whether a value is a date or a time, or several, and nothing else."""
    if len(text) > SHORT or not _MOMENT_SIGNS.fullmatch(text) or not _MOMENT.search(text):
        return False
    return not any(map(str.isalnum, _MOMENT.sub(" ", text)))


def is_quantity(name: str) -> bool:
    """Return whether a field is named for a date, a time or an amount."""
    return _named(name)[0] in _QUANTITIES


def holds_texts(name: str) -> bool:
    """Return whether a field is named for what people read."""
    return _named(name)[0] in _TEXTS


def tells_of_a_meeting(name: str, beside: Iterable[str]) -> bool:
    """Return whether an argument tells people where they meet: another one of its call then says what for."""
    return _named(name)[0] in _MEETING and any(_named(other)[0] in _HEADED for other in beside)


def words_of(name: str) -> frozenset[str]:
    """Return the words of a name, each also without the `s` of a plural."""
    return _named(name)[1]


def is_of_ones_own_list(tool: str, name: str) -> bool:
    """Return whether an argument is an entry of a list that people keep for themselves, such as what to buy."""
    named = name_words(tool)
    return _named(name)[0] in _ENTRIES and not _LISTS.isdisjoint(named)


def is_removed(name: str) -> bool:
    """Return whether an argument is the text of a file that an edit takes out."""
    return name.lower() in _REMOVED


def file_named_in(arguments: Mapping[str, Any]) -> str:
    """Return the file that a call says it is about; empty where it says none, or several."""
    found = [value for name, value in arguments.items() if _named(name)[1] & _FILES and isinstance(value, str)]
    return found[0] if len(found) == 1 else ""


def is_number_of_a_parcel(name: str, value: str) -> bool:
    """Return whether a value is the number by which a parcel is tracked; an id can be that of who tracks people."""
    last, named = _named(name)
    return last in {"number", "numbers"} and "tracking" in named and bool(_PARCEL.fullmatch(value.strip()))


def takes_identifiers(name: str, value: str) -> bool:
    """Return whether an argument may take an identifier of its provider, and never an address, host, URL or path."""
    named = _named(name)[1]
    if not is_identifier_name(name) and named & _RECEIVERS and (is_address(value) or _WALLET.fullmatch(value)):
        return False
    # The number of a mail is not an address, the id of a target is an id, and a commit is nothing else.
    things = _OF_THINGS if is_identifier_name(name) or _COMMIT.fullmatch(value) else frozenset[str]()
    if _named(name)[0] in {"id", "ids"}:
        # Also a thing on a board, and an address that is on file; the number of a card is that of a bank.
        things |= {"card"} if " " in value else {"card", "address", "addres", "addresses", "addresse"}
    return not (named - things) & _OUTWARD


def takes_fields(name: str) -> bool:
    """Return whether an argument may take an identifier from a field that is only called as the argument is."""
    return not _named(name)[1] & (_RECEIVERS | _UNLISTED)


def is_of_a_person(name: str) -> bool:
    """Return whether an argument says who gets or does something."""
    return bool(_named(name)[1] & (_RECEIVERS | _PERSONS))


def is_postal(name: str) -> bool:
    """Return whether what bears a name is where a parcel or a letter goes."""
    named = _named(name)[1]
    return bool(named & {"address", "ship", "shipping", "delivery", "billing"}) and not named & {"email", "mail"}


def is_named_person(above: str, name: str) -> bool:
    """Return whether an argument is what somebody is called for whom something is booked or done."""
    return bool(_named(above)[1] & _PEOPLE and _named(name)[1] & _CALLED)


def is_identifier_name(name: str) -> bool:
    """Return whether an argument is named as the identifier of a thing."""
    return _named(name)[0] in {"id", "ids", "uid", "uuid", "number"}


@lru_cache(maxsize=1024)
def _named(name: str) -> tuple[str, frozenset[str]]:
    """Return the last word of a name, and all of its words, each also without the `s` of a plural."""
    found = name_words(name)
    return (found[-1] if found else ""), frozenset((*found, *(word.removesuffix("s") for word in found)))


def is_domain(label: str) -> bool:
    """Return whether a word is the last label of the names of hosts."""
    return label.lower() in _DOMAINS


def hosts_in(value: str) -> list[str]:
    """Return the hosts of the URLs in a value."""
    return _HOST.findall(value)[:MOST_WITHIN]


def links_in(text: str) -> list[str]:
    """Return the hosts to which a string leads whoever reads it, with or without a scheme."""
    if "." not in text and "//" not in text:
        return []
    lowered = text.lower()
    after = (host for pattern in _HOST_AFTER for host in pattern.findall(lowered))
    bare = (host for found in _DOMAIN.finditer(text) if (host := _bare_host(text, found)))
    found = dict.fromkeys((*hosts_in(text), *after, *bare))
    # A name after `www.` is looked up by itself, and with it once more would find the same.
    return list(islice((host for host in found if _without_www(host) not in found), MOST_WITHIN))


def _without_www(host: str) -> str | None:
    lowered = host.lower()
    return lowered.removeprefix("www.") if lowered.startswith("www.") else None


def _bare_host(text: str, domain: re.Match[str]) -> str:
    """Return the host without a scheme that ends with a domain; empty where it is none."""
    if domain.group(1).lower() not in _DOMAINS:
        return ""
    start, least = domain.start(), max(domain.start() - _LONGEST_HOST, 0)
    while start > least and (text[start - 1].isalnum() or text[start - 1] in "-._"):
        start -= 1
    return "" if text[max(start - 1, 0) : start] in {"@", "/", ":"} else text[start : domain.end()].lstrip(".-")


def addresses_in(value: str) -> list[str]:
    """Return the addresses in a list of them, so that each is looked at by itself however long the list is."""
    return _LISTED.findall(value)[:MOST_WITHIN]


def is_address_of_a_page(name: str, value: str) -> bool:
    """Return whether a value says which page a read fetches."""
    named = {*name_words(name)}
    return _holds_a_url(value) or bool(named & {"url", "urls", "uri", "link", "href", "endpoint"})
