"""The health check of docker-compose.yml, asked of processes as the containers run them."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.acceptance.processes import wait_until
from tests.acceptance.system import System
from tests.redis_server import RedisServer, free_port

COMPOSE = yaml.safe_load((Path(__file__).parents[2] / "docker-compose.yml").read_text())
WORDS: list[str] = [word.replace("$$", "$") for word in COMPOSE["services"]["leader"]["healthcheck"]["test"][1:]]


def well(port: int) -> bool:
    """What Docker is told."""
    environment = {**os.environ, "DSCHED_METRICS_PORT": str(port)}
    return subprocess.run(WORDS, env=environment, capture_output=True, check=False, timeout=60).returncode == 0


@pytest.mark.parametrize("kind", ["leader", "binder", "evaluator"])
def test_it_tells_a_process_that_is_well_from_one_that_hangs_is_gone_or_has_lost_redis(tmp_path: Path, kind: str):
    port = free_port()
    server = RedisServer(tmp_path / "redis")
    server.start()
    system = System(tmp_path / "system", server.url, DSCHED_METRICS_PORT=str(port), DSCHED_METRICS_HOST="127.0.0.1")
    assert not well(port)
    try:
        if kind == "leader":
            system.leader()
        else:
            (leads := System(tmp_path / "leads", server.url)).leader()
            system.worker(kind)
        wait_until("it is well", lambda: well(port))
        pid = system.pid(kind)
        os.kill(pid, signal.SIGSTOP)
        try:
            assert not well(port)
        finally:
            os.kill(pid, signal.SIGCONT)
        wait_until("it is well again", lambda: well(port))
        server.stop()
        wait_until("it is not ready without Redis", lambda: not well(port))
        server.start()
        wait_until("it is ready again", lambda: well(port))
    finally:
        system.end()
        if kind != "leader":
            leads.end()
        server.stop()
