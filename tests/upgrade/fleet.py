"""A system's processes as a cluster's Deployments run them: of two releases at once while one replaces the other."""

import itertools
import re
import subprocess
import sys
from pathlib import Path

from dsched.state import client, leaders, lease, workers
from tests.acceptance.processes import wait_until
from tests.acceptance.system import TRACEBACK
from tests.upgrade.releases import Release

END_S = 60.0
REFUSED = re.compile(r"bind request refused|message refused")
WORKERS = ("evaluator", "binder")


class Fleet:
    """Processes of one system; each has a name like ``old-binder-3``."""

    def __init__(self, folder: Path, redis_url: str) -> None:
        self.store = client.connect(redis_url, "default")
        self._folder = folder
        self._url = redis_url
        self._numbers = itertools.count(1)
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        folder.mkdir()

    def start(self, release: Release, component: str) -> str:
        """Start a process and wait until it is ready; its name."""
        name = f"{release.name}-{component}-{next(self._numbers)}"
        if component == "leader":
            command = ["dsched", "leader", "--identity", name, "--mode", "distributed"]
        else:
            # As the Deployments have it.
            command = ["celery", "-A", f"workers.{component}", "worker", "--hostname", f"{name}@here"]
            command += ["--pool", "prefork", "--concurrency", "1", "-O", "fair", "--without-gossip", "--without-mingle"]
            command += ["--without-heartbeat", "--loglevel", "INFO"]
        where = {"DSCHED_REDIS_URL": self._url, "DSCHED_NAME": "default", "DSCHED_DATA_DIR": str(self._folder)}
        with self._log(name).open("wb") as log:
            self._running[name] = subprocess.Popen(
                [sys.executable, "-m", *command],
                env=release.environment(**where),
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        wait_until(f"{name} is ready\n{self.logs()}", lambda: self._is_ready(name, component))
        return name

    def of(self, component: str) -> list[str]:
        """The processes of a Deployment."""
        return [name for name in self._running if f"-{component}-" in name]

    def roll(self, component: str, release: Release) -> None:
        """Replace a Deployment's processes one by one: a new one is ready before an old one is asked to end."""
        for name in self.of(component):
            self.start(release, component)
            self.stop(name)

    def stop(self, name: str) -> None:
        """Ask a process to end.

        Raises:
            AssertionError: it does not end well, or has logged a traceback.
        """
        process = self._running.pop(name)
        process.terminate()
        code = process.wait(END_S)
        assert code == 0, f"{name} ended with {code}\n{self.logs()}"
        text = self._log(name).read_text(errors="replace")
        assert TRACEBACK.findall(text) == [], text[-4000:]

    def leading(self) -> str:
        """The process that leads, empty while none does."""
        held = lease.holder(self.store)
        return next((name for name in self.of("leader") if held and held[0].startswith(f"{name}-")), "")

    def quarantine(self, component: str, release: Release) -> int:
        """How often processes of a release have refused what a leader sent."""
        logs = self._folder.glob(f"{release.name}-{component}-*.log")
        return sum(len(REFUSED.findall(path.read_text(errors="replace"))) for path in logs)

    def end(self) -> None:
        """Leave nothing running."""
        for process in self._running.values():
            process.kill()
            process.wait(END_S)
        self.store.close()

    def logs(self) -> str:
        """The ends of all logs, for messages."""
        return "\n".join(f"== {path.name}\n{path.read_text(errors='replace')[-1500:]}" for path in self._paths())

    def _is_ready(self, name: str, component: str) -> bool:
        process = self._running[name]
        assert process.poll() is None, f"{name} ended with {process.returncode}\n{self._log(name).read_text()}"
        if component == "leader":
            return any(each.identity.startswith(f"{name}-") for each in leaders.read(self.store))
        return any(each.name == f"{name}@here" for each in workers.read(self.store))

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def _paths(self) -> list[Path]:
        return sorted(self._folder.glob("*.log"))
