"""Redis behind TLS: the store, Celery and a real worker check who the server is.

By Redis itself where its program is built with TLS, else by a tunnel in front of it: to a client they are the same.
"""

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsched.errors import RedisUnavailable
from dsched.leader.dispatch import Dispatcher
from dsched.state import client
from dsched.state.client import UNAVAILABLE
from tests import tls_tunnel
from tests.acceptance.certificates import Certificates, make
from tests.integration.workers.processes import Workers, wait_until
from tests.redis_server import RedisServer, binary, free_port

ROOT = Path(__file__).parents[3]


class Encrypted:
    """Where it is, with the options by which a client trusts it, and without."""

    def __init__(self, port: int, certificates: Certificates) -> None:
        self.stranger = f"rediss://127.0.0.1:{port}/0"
        self.url = f"{self.stranger}?ssl_ca_certs={certificates.authority}"


def speaks_tls() -> bool:
    """Whether the Redis program is built with TLS: it knows the setting then, and only misses the certificate."""
    command = [str(binary()), "--port", "0", "--tls-port", str(free_port()), "--tls-cert-file", "/none"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    return "Bad directive" not in done.stdout + done.stderr and "wrong number" not in done.stdout + done.stderr


@pytest.fixture(scope="module")
def encrypted(redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Encrypted]:
    folder = tmp_path_factory.mktemp("tls")
    certificates = make(folder / "certificates")
    port = free_port()
    if speaks_tls():
        files = ("--tls-cert-file", str(certificates.certificate), "--tls-key-file", str(certificates.key))
        authority = ("--tls-ca-cert-file", str(certificates.authority), "--tls-auth-clients", "no")
        server = RedisServer(folder / "redis", "--tls-port", str(port), *files, *authority)
        server.start()
        yield Encrypted(port, certificates)
        server.stop()
        return
    with tls_tunnel.opened(certificates, redis_server.port) as port:
        yield Encrypted(port, certificates)


def test_store_and_worker_work_behind_tls(encrypted: Encrypted, tmp_path: Path) -> None:
    store = client.connect(encrypted.url, f"tls-{tmp_path.name}")
    farm = Workers(store, tmp_path, evaluators=0)
    dispatcher = Dispatcher(store)
    try:
        farm.start("binder-1")
        store.redis.delete(store.key("workers"))
        dispatcher.ping([f"binder-1@{socket.gethostname()}"], expires_s=60)
        wait_until("the worker has taken a message", lambda: "binder-1" in farm.known(), 60)
    finally:
        dispatcher.close()
        farm.stop()
        store.close()


def test_a_server_that_cannot_prove_who_it_is_gets_nothing(encrypted: Encrypted) -> None:
    store = client.connect(encrypted.stranger)
    dispatcher = Dispatcher(store)
    with pytest.raises(UNAVAILABLE, match="certificate verify failed"):
        store.redis.ping()
    with pytest.raises(RedisUnavailable, match="certificate verify failed"):
        dispatcher.ping(["binder-1@host"], expires_s=1)
    dispatcher.close()
    store.close()


def test_the_check_is_left_out_only_when_the_url_says_so(encrypted: Encrypted) -> None:
    store = client.connect(encrypted.stranger + "?ssl_cert_reqs=none&ssl_check_hostname=false")
    assert store.redis.ping()
    store.close()
