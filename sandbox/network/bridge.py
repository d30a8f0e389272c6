"""Join a jail and its proxy: the jail's own network hands out the one socket in it that answers."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from sandbox.network.proxy import Proxy


class NetworkBridge:
    """Hold the end that a jail is started with, and whether its network was made."""

    def __init__(self, way: int) -> None:
        self.way = way
        """The open file by which the jail's network hands out its socket."""
        self.made = False


@asynccontextmanager
async def open_bridge(proxy: Proxy) -> AsyncGenerator[NetworkBridge]:
    """Let the proxy answer the jail that is started with the bridge's `way`, until this is left."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        bridge = NetworkBridge(theirs.fileno())
        serving = asyncio.create_task(_serve(ours, bridge, proxy))
        try:
            yield bridge
        finally:
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving


async def _serve(ours: socket.socket, bridge: NetworkBridge, proxy: Proxy) -> None:
    arrived = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(ours, arrived.set)
    try:
        await arrived.wait()
    finally:
        loop.remove_reader(ours)
    _, files, *_ = socket.recv_fds(ours, 1, 1)
    if not files:
        return
    bridge.made = True
    with socket.socket(fileno=files[0]) as listening:
        await proxy.serve(listening)
