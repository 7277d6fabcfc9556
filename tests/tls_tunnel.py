"""TLS in front of a server that has none: ``python -m tests.tls_tunnel PORT SERVER-PORT CERTIFICATE KEY``."""

import asyncio
import contextlib
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.acceptance.certificates import Certificates
from tests.acceptance.processes import wait_until
from tests.redis_server import free_port


@contextlib.contextmanager
def opened(certificates: Certificates, to: int) -> Iterator[int]:
    """A tunnel to a port of 127.0.0.1, in a process of its own; its port."""
    port = free_port()
    words = [str(port), str(to), str(certificates.certificate), str(certificates.key)]
    process = subprocess.Popen([sys.executable, "-m", "tests.tls_tunnel", *words], cwd=Path(__file__).parents[1])
    try:
        wait_until("the tunnel listens", lambda: _listens(port))
        yield port
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Hand on what comes until one end closes."""
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()


async def serve(port: int, server_port: int, certificate: str, key: str) -> None:
    """Take connections until killed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", server_port)
        await asyncio.gather(pump(reader, server_writer), pump(server_reader, writer))

    server = await asyncio.start_server(connected, "127.0.0.1", port, ssl=context)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]))
