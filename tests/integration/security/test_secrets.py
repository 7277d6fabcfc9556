"""A password in the URL shows nowhere: not in logs, not in status, not in errors. It may come from a file."""

import os
from pathlib import Path

import pytest

from dsched.errors import SystemNotFound
from dsched.state import address
from dsched.supervisor import commands
from tests import command_server
from tests.integration.workers.processes import WorkerProcess, wait_until
from tests.redis_server import Guarded, free_port

SECRET = "s3cr3t-pa55"


def urls(guarded: Guarded) -> dict[str, str]:
    """Nobody there; a wrong password; no Sentinel; no URL at all."""
    return {
        "away": f"redis://leader:{SECRET}@127.0.0.1:{free_port()}/0",
        "wrong": f"redis://leader:{SECRET}@127.0.0.1:{guarded.port}/0",
        "sentinel": f"redis+sentinel://leader:{SECRET}@127.0.0.1:{free_port()}/state/0?sentinel_password={SECRET}",
        "broken": f"redis://leader:{SECRET}/{SECRET}@127.0.0.1:6379/0",
    }


@pytest.mark.parametrize("kind", ["away", "wrong", "sentinel", "broken"])
@pytest.mark.parametrize("command", ["status", "queue"])
def test_commands_do_not_show_it(guarded: Guarded, kind: str, command: str) -> None:
    environment = {**os.environ, "DSCHED_REDIS_URL": urls(guarded)[kind]}
    done = command_server.run(command, environment=environment, folder=Path.cwd(), timeout_s=120)
    shown = done.stdout + done.stderr
    assert done.returncode == 1
    assert "leader:***@" in shown
    assert SECRET not in shown
    assert "Traceback" not in shown


@pytest.mark.parametrize("kind", ["away", "wrong", "sentinel"])
def test_processes_do_not_log_it(guarded: Guarded, tmp_path: Path, kind: str) -> None:
    url = urls(guarded)[kind]
    system = commands.System(tmp_path, redis_url=url, evaluators=0, binders=1)
    for spec in commands.specs(system):
        process = WorkerProcess(spec.name, spec.command, commands.environment(system, url), tmp_path)
        try:
            said = "starting over" if spec.name == "leader-1" else "rror"
            wait_until(f"{spec.name} says what is wrong", lambda p=process, s=said: s in p.log.read_text(), 60)
        finally:
            process.kill()
        assert SECRET not in process.log.read_text()


def test_the_url_may_stand_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "url"
    path.write_text(f"redis://:{SECRET}@h:1/0\n")
    monkeypatch.setenv(address.URL_FILE, str(path))
    assert address.find(None, tmp_path, None).redis_url == f"redis://:{SECRET}@h:1/0"
    assert address.find("redis://other/0", tmp_path, None).redis_url == "redis://other/0"
    monkeypatch.setenv(address.URL_FILE, str(tmp_path / "none"))
    with pytest.raises(SystemNotFound, match=r"none \(DSCHED_REDIS_URL_FILE\) cannot be read"):
        address.find(None, tmp_path, None)
