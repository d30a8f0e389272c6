"""One stream of random numbers for everything random in a program, drawn from the seed of its first frame."""

import os
from _random import Random as Stream
from types import ModuleType
from typing import Any


class SeededRandomness:
    """Stand in for the randomness of the kernel."""

    def __init__(self) -> None:
        """Begin with a fixed stream, for what is imported before the program starts."""
        self._stream: Any = Stream(0)

    def start(self, seed: str | int) -> None:
        """Begin the stream of one program."""
        self._stream.seed(seed if isinstance(seed, int) else int.from_bytes(seed.encode(), "big"))

    def install(self) -> None:
        """Replace what asks the kernel; secrets, uuid4 and every generator that nobody seeds come through here."""
        os.urandom = self.urandom
        setattr(os, "getrandom", self.getrandom)  # noqa: B010 - not everywhere, types say

    def urandom(self, size: int, /) -> bytes:
        """Return bytes that are random to the program and the same in every run of it."""
        if size < 0:
            raise ValueError("negative argument not allowed")
        return self._stream.getrandbits(8 * size).to_bytes(size, "little") if size else b""

    def getrandom(self, size: int, flags: int = 0) -> bytes:
        """Return the same kind of bytes."""
        return self.urandom(size)

    def install_random(self, module: ModuleType) -> None:
        """Seed generators that nobody seeds, the one behind the module's functions among them."""
        real = module.Random.seed

        def seed(generator: Any, a: Any = None, version: int = 2) -> None:
            """Initialize internal state from a seed."""
            real(generator, self._stream.getrandbits(256) if a is None else a, version)

        module.Random.seed = seed
        behind = vars(module)["_inst"]
        vars(module)["seed"] = behind.seed
        behind.seed()

    def install_uuid(self, module: ModuleType) -> None:
        """Make uuid1 of the program's clock and a made-up address instead of the machine's."""
        vars(module).update(_generate_time_safe=None, _node=self._stream.getrandbits(48) | (1 << 40))
