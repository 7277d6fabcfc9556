"""TLS in front of a Redis that cannot do it itself: ``python -m tests.tls_tunnel PORT REDIS-PORT CERTIFICATE KEY``."""

import asyncio
import contextlib
import ssl
import sys


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Hand on what comes until one end closes."""
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()


async def serve(port: int, redis_port: int, certificate: str, key: str) -> None:
    """Take connections until killed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        redis_reader, redis_writer = await asyncio.open_connection("127.0.0.1", redis_port)
        await asyncio.gather(pump(reader, redis_writer), pump(redis_reader, writer))

    server = await asyncio.start_server(connected, "127.0.0.1", port, ssl=context)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]))
