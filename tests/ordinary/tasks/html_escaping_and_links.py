# result: {"links": ["/one", "/two?a=1&b=2"], "text": "News & moreSee one or two.", "escaped": "&lt;a href=&quot;x&quot;&gt;", "back": "<3 é 😀"}
import html
from html.parser import HTMLParser

PAGE = """<h1>News &amp; more</h1><p>See <a href="/one">one</a> or <a class=x href='/two?a=1&amp;b=2'>two</a>.<br></p>"""


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.text = [], []

    def handle_starttag(self, tag, attrs):
        if tag == "a":
            self.links.append(dict(attrs)["href"])

    def handle_data(self, data):
        self.text.append(data)


async def main():
    parser = Links()
    parser.feed(PAGE)
    return {
        "links": parser.links,
        "text": "".join(parser.text),
        "escaped": html.escape('<a href="x">'),
        "back": html.unescape("&lt;3 &eacute; &#128512;"),
    }
