"""A real Redis Sentinel for tests: the same program as the server, in its other mode."""

import signal
import subprocess
import time
from pathlib import Path

from dsched.state import client
from tests.redis_server import START_DEADLINE_S, STOP_DEADLINE_S, binary, free_port


class Sentinel:
    """One Sentinel that watches one master, quorum 1.

    Args:
        settings: further lines of its configuration.
    """

    def __init__(self, folder: Path, master: str, master_port: int, settings: str = "") -> None:
        self.port = free_port()
        self._folder = folder
        self._path = folder / "sentinel.conf"
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True)
        self._path.write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {folder}\nlogfile {folder / 'sentinel.log'}\n"
            f"sentinel monitor {master} 127.0.0.1 {master_port} 1\n"
            f"sentinel down-after-milliseconds {master} 60000\nsentinel failover-timeout {master} 60000\n{settings}"
        )

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._process = subprocess.Popen([str(binary()), str(self._path), "--sentinel"], stdin=subprocess.DEVNULL)
        store = client.connect(f"redis://127.0.0.1:{self.port}/0")
        deadline = time.monotonic() + START_DEADLINE_S
        try:
            while True:
                try:
                    store.redis.ping()
                    return
                except client.UNAVAILABLE:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.02)
        finally:
            store.close()

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(STOP_DEADLINE_S)
            self._process = None
