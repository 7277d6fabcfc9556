"""A Redis whose machine is gone without a word: TCP finds out, not the time that an answer may take."""

import errno
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dsched.state import client
from tests.acceptance.fixtures import redis_program
from tests.redis_server import RedisServer

__all__ = ["redis_program"]

APART = ["unshare", "--net", "--map-root-user"]
"""A network of its own, which can be cut."""


def main(folder: Path) -> None:
    """Within that network: what a command meets once nothing gets through any more."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    server = RedisServer(folder / "redis")
    server.start()
    store = client.connect(server.url)
    try:
        store.redis.ping()
        subprocess.run(["ip", "link", "set", "lo", "down"], check=True)
        store.redis.set("a", "b")
    except client.UNAVAILABLE as error:
        found: BaseException | None = error
        while found is not None and not isinstance(found, OSError):
            found = found.__cause__ or found.__context__
        print(errno.errorcode.get(getattr(found, "errno", None) or 0, f"none: {error!r}"))
    finally:
        server.kill()


def test_a_connection_whose_other_end_is_gone_is_given_up_by_tcp(redis_program: Path, tmp_path: Path) -> None:
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip("no unshare, or no ip, to have a network of its own")
    if subprocess.run([*APART, "ip", "link", "set", "lo", "up"], check=False, capture_output=True).returncode:
        pytest.skip("this user may not have a network of its own")
    ran = subprocess.run(
        [*APART, sys.executable, "-m", "tests.integration.state.test_half_open", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
        check=False,
    )
    assert ran.stdout.strip() == "ETIMEDOUT", ran.stdout + ran.stderr


if __name__ == "__main__":
    main(Path(sys.argv[1]))
