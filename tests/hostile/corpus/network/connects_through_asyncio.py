# holds: no_connection
# ends: any
import asyncio


async def main():
    for attempt in (
        lambda: asyncio.open_connection("127.0.0.1", TCP_PORT),
        lambda: asyncio.open_unix_connection(STREAM_PATH),
        lambda: asyncio.get_running_loop().create_connection(asyncio.Protocol, "127.0.0.1", TCP_PORT),
        lambda: asyncio.get_running_loop().create_datagram_endpoint(
            asyncio.DatagramProtocol, remote_addr=("127.0.0.1", UDP_PORT)
        ),
    ):
        try:
            opened = await attempt()
            opened[0].sendto(b"hello from inside") if hasattr(opened[0], "sendto") else opened[1].write(b"hello")
        except Exception as error:
            print(type(error).__name__, error)
    return "tried"
