# result: {"host": ["example.org", 8443, "user"], "query": {"q": ["café", "2"], "empty": [""]}, "clean": "https://example.org/a/b%20c/?page=2&q=a+b%26c", "joined": "https://example.org/a/c?d=1", "quoted": "%C3%A4%2F%C3%B6%20%C3%BC", "unquoted": "a b+c", "pairs": [["a", "1"], ["b", "2"]]}
from urllib.parse import parse_qs, parse_qsl, quote, unquote_plus, urlencode, urljoin, urlsplit, urlunsplit

url = urlsplit("https://user@example.org:8443/a/b%20c/?q=caf%C3%A9&q=2&empty=#top")
query = parse_qs(url.query, keep_blank_values=True)
clean = urlunsplit(url._replace(netloc=url.hostname, query=urlencode([("page", 2), ("q", "a b&c")]), fragment=""))
return {
    "host": [url.hostname, url.port, url.username],
    "query": query,
    "clean": clean,
    "joined": urljoin("https://example.org/a/b/", "../c?d=1"),
    "quoted": quote("ä/ö ü", safe=""),
    "unquoted": unquote_plus("a+b%2Bc"),
    "pairs": parse_qsl("a=1&b=2"),
}
