"""A service that stands in for the bot's: python examples/bot/stand_in.py, and its address is printed.

It refuses a request while another one of the same session is under way, as services with session files do.
"""

import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BUSY_S = 0.1


class Bot:
    """Remember sessions, and what was said in them."""

    def __init__(self) -> None:
        self.log_ins = 0
        self.said: list[str] = []
        self.clashes = 0
        self._sessions: dict[str, threading.Lock] = {}

    def answer(self, path: str, data: dict[str, Any], key: str) -> tuple[int, dict[str, Any]]:
        """Return the status and the body of an answer."""
        if path == "/log-in":
            self.log_ins += 1
            made = secrets.token_hex(16)
            self._sessions[made] = threading.Lock()
            return 200, {"key": made}
        lock = self._sessions.get(key)
        if lock is None:
            return 401, {"error": "log in first"}
        if not lock.acquire(blocking=False):
            self.clashes += 1
            return 409, {"error": "this session is in use"}
        try:
            time.sleep(BUSY_S)
            return self._answer(path, data)
        finally:
            lock.release()

    def _answer(self, path: str, data: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path == "/replies":
            return 200, {"replies": [f"You said: {text}" for text in self.said[-int(data["limit"]) :]]}
        text = data["text"] if path == "/messages" else f"[{data['text']}]"
        self.said.append(text)
        return 200, {"sent": text, "number": len(self.said)}


def serving(bot: Bot, port: int = 0) -> ThreadingHTTPServer:
    """Return a server of the bot on loopback that has not begun to serve."""

    class Requests(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, found = bot.answer(self.path, json.loads(body), self.headers.get("Authorization", ""))
            told = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return ThreadingHTTPServer(("127.0.0.1", port), Requests)


if __name__ == "__main__":
    server = serving(Bot())
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
