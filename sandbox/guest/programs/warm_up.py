"""A program that every jail runs before it is ready, so that no other pays for what only the first one costs."""

from typing import Any

from sandbox.guest.programs.host_pipe import HostPipe

START: dict[str, Any] = {
    "source": "n, found = 0, []\nwhile n < 3:\n    found.append(await tools.find(n=n))\n    n += 1\nreturn found",
    "bindings": {
        "tools": {
            "find": (
                "from typing import Any\n\nfrom sandbox_py.client import UNSET, call\n\n\n"
                "async def find(*, n: int, limit: int = UNSET) -> Any:\n"
                '    """Find."""\n'
                '    return await call("tools.find", {\n'
                '        name: value for name, value in {"n": n, "limit": limit}.items() if value is not UNSET\n'
                "    })\n"
            )
        }
    },
    "seed": "warm up",
    "now": 0.0,
    "calls_from": 0,
}
END = '{"ok":[0,1,2]}'


class WarmUpPipe(HostPipe):
    """Answer each call by its number, without a host."""

    def __init__(self) -> None:
        """Begin with the first call."""
        self._calls = 0

    def send(self, text: str) -> None:
        """Take a frame."""

    def receive(self) -> Any:
        """Return the answer to the last frame."""
        number, self._calls = self._calls, self._calls + 1
        return {"now": float(number), "results": [{"i": number, "ok": number}]}
