"""How commands find their system: data folders, the environment, and Redis servers of all kinds."""

import json
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance import certificates, processes
from tests.acceptance.fixtures import MakeSystem
from tests.acceptance.system import System, listed
from tests.manifests import node_manifest, pod_manifest
from tests.redis_server import RedisServer, binary, free_port

PASSWORD = "p@ss/w:rd%20#?"
QUOTED = "p%40ss%2Fw%3Ard%2520%23%3F"


def place_one(system: System) -> None:
    """A pod goes all the way, through leader, broker and binder."""
    system.apply(node_manifest(), pod_manifest())
    system.told("wait", "--for", "scheduled", "--timeout", "60")
    (pod,) = system.get("pods", "-n", "default")
    assert pod["spec"]["nodeName"] == "n1"


def test_systems_side_by_side_know_nothing_of_each_other(make_system: MakeSystem):
    one, two = make_system("one"), make_system("two")
    one.up("--evaluators", "1", "--binders", "1")
    two.up("--evaluators", "1", "--binders", "1")
    one.apply(node_manifest("n1"), pod_manifest("default/first"))
    two.apply(node_manifest("n2"), pod_manifest("default/second"))
    for system, pod, node in ((one, "first", "n1"), (two, "second", "n2")):
        system.told("wait", "--for", "scheduled", "--timeout", "60")
        (found,) = system.get("pods")
        assert (found["metadata"]["name"], found["spec"]["nodeName"]) == (pod, node)
    one.down()
    assert one.run("get", "pods", *one.where()).returncode == 1
    assert two.status()["state"]["leader"] is not None


def test_a_system_is_found_by_the_environment(make_system: MakeSystem, tmp_path: Path):
    system = make_system()
    system.up("--evaluators", "0", "--binders", "1")
    by_folder = make_system("elsewhere", DSCHED_DATA_DIR=str(system.data_dir))
    assert by_folder.run("apply", "-f", "-", stdin=manifest()).returncode == 0
    assert by_folder.run("wait", "--timeout", "60").returncode == 0
    url = system.status()["redis"]
    by_url = make_system("far", DSCHED_REDIS_URL=url, DSCHED_DATA_DIR=str(tmp_path / "none"))
    assert "Scheduled" in by_url.run("get", "pods").stdout
    nowhere = make_system("nowhere", DSCHED_DATA_DIR=str(tmp_path / "none"))
    told = nowhere.run("get", "pods")
    assert told.returncode == 1
    assert "start one with 'dsched up --detach'" in told.stderr


def manifest() -> str:
    """A node and a pod."""
    return json.dumps(listed([node_manifest(), pod_manifest()]))


@pytest.fixture
def guarded_redis(redis_program: Path, tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis with a password that has to be quoted in a URL."""
    server = RedisServer(tmp_path / "guarded", "--requirepass", PASSWORD)
    server.url = f"redis://:{QUOTED}@127.0.0.1:{server.port}/3"
    server.start()
    yield server
    server.stop()


def test_redis_with_a_password(guarded_redis: RedisServer, make_system: MakeSystem):
    system = make_system("system", guarded_redis.url, f"guarded-{uuid.uuid4().hex}")
    system.up("--evaluators", "1", "--binders", "1")
    place_one(system)
    told = system.run("status", "--data-dir", str(system.data_dir))
    shown = told.stdout + told.stderr + system.logs() + str(processes.of_folder(system.folder))
    assert "***@127.0.0.1" in told.stdout
    assert QUOTED not in shown
    assert PASSWORD not in shown


def test_a_wrong_password_is_told_without_telling_it(guarded_redis: RedisServer, system: System):
    url = guarded_redis.url.replace(QUOTED, "guess")
    for words in (("up", "--detach", "--data-dir", str(system.data_dir)), ("get", "pods")):
        told = system.run(*words, "--redis-url", url)
        assert told.returncode == 1
        assert "does not answer" in told.stderr
        assert "guess" not in told.stderr
        assert "Traceback" not in told.stderr


def test_redis_by_a_socket_of_the_machine(redis_program: Path, make_system: MakeSystem) -> None:
    with tempfile.TemporaryDirectory() as folder:  # a socket's path may have a hundred characters
        server = RedisServer(Path(folder), "--unixsocket", f"{folder}/socket")
        server.start()
        try:
            system = make_system("system", f"unix://{folder}/socket?db=2", "socket")
            system.up("--evaluators", "1", "--binders", "1")
            place_one(system)
            system.down()
        finally:
            server.stop()


@pytest.fixture
def tls_redis(redis_program: Path, tmp_path: Path) -> Iterator[str]:
    """URL of a Redis that speaks nothing but TLS and wants to see a certificate; skipped where it cannot."""
    made = certificates.make(tmp_path / "certificates")
    port = free_port()
    command = [str(binary()), "--port", "0", "--tls-port", str(port), "--bind", "127.0.0.1", "--save", ""]
    command += ["--tls-cert-file", str(made.certificate), "--tls-key-file", str(made.key)]
    command += ["--tls-ca-cert-file", str(made.authority), "--dir", str(tmp_path)]
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        # Without TLS in it, the program ends at the first tls- option.
        deadline = time.monotonic() + 20
        while server.poll() is None and not processes.listens(port):
            assert time.monotonic() < deadline, "Redis did not begin to listen"
            time.sleep(0.05)
        if server.poll() is not None:
            pytest.skip(f"{binary()} was built without TLS")
        files = f"ssl_ca_certs={made.authority}&ssl_certfile={made.certificate}&ssl_keyfile={made.key}"
        yield f"rediss://127.0.0.1:{port}/0?{files}"
    finally:
        server.terminate()
        server.communicate()


def test_redis_over_tls(tls_redis: str, make_system: MakeSystem):
    system = make_system("system", tls_redis, "tls")
    system.up("--evaluators", "1", "--binders", "1")
    place_one(system)


def test_tls_redis_with_an_unknown_authority_is_refused(tls_redis: str, system: System):
    told = system.run("get", "pods", "--redis-url", tls_redis.partition("?")[0])
    assert told.returncode == 1
    assert "does not answer" in told.stderr
    assert "Traceback" not in told.stderr
