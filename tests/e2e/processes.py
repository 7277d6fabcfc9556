"""dsched's processes on this machine, started with the commands, variables and rights that their Deployments give."""

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.acceptance import processes as kernel
from tests.acceptance.system import TRACEBACK, environment
from tests.e2e.deployment import Deployment
from tests.redis_server import RedisServer, free_port

Json = dict[str, Any]

STOP_DEADLINE_S = 60.0
POOL_KILLED = "billiard."
"""How errors begin that Celery logs when a pool process was killed."""


class Processes:
    """Leaders, evaluators and binders around one Redis; each has a name like ``leader-1``.

    Args:
        name: the system's, so that several tests can use one Redis.
    """

    def __init__(self, folder: Path, deployment: Deployment, redis: RedisServer, name: str) -> None:
        self.folder = folder
        self.redis = redis
        self.name = name
        self._deployment = deployment
        self._leader_options: tuple[str, ...] = ()
        self._killed: list[str] = []
        self._ports: dict[str, int] = {}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        folder.mkdir(parents=True, exist_ok=True)
        self._configuration = folder / "scheduler.yaml"
        self._configuration.write_text(deployment.scheduler_configuration())
        given = deployment.environment() | {"DSCHED_REDIS_URL": redis.url, "DSCHED_NAME": name, "DSCHED_LOG": "console"}
        self.environment: Mapping[str, str] = environment(**given) | {
            "DSCHED_CONFIG": str(self._configuration),
            "DSCHED_DATA_DIR": str(folder),
        }

    def start(self, *options: str, leaders: int = 1, evaluators: int = 1, binders: int = 1) -> None:
        """Start so many and wait until all are ready; the options are for leaders."""
        self._leader_options = options
        for component, count in (("leader", leaders), ("evaluator", evaluators), ("binder", binders)):
            for number in range(1, count + 1):
                self.start_one(f"{component}-{number}")
        for name in self._running:
            kernel.wait_until(f"{name} is ready\n{self.logs()}", lambda name=name: self.is_ready(name))

    def start_one(self, name: str) -> None:
        """Start a process."""
        component, _, _ = name.partition("-")
        # Here all share a host; there each pod is one.
        command = [word.replace(f"{component}@%h", f"{name}@%h") for word in self._deployment.command(component)]
        command += self._leader_options if component == "leader" else ()
        self._ports[name] = free_port()
        own = {"POD_NAME": name, "DSCHED_METRICS_HOST": "127.0.0.1", "DSCHED_METRICS_PORT": str(self._ports[name])}
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                [sys.executable, "-m", *command],
                env={**self.environment, **self.rights(component), **own},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def is_ready(self, name: str) -> bool:
        """What the readiness probe of its Deployment says."""
        return self._probe(name, "readinessProbe")

    def not_alive(self) -> list[str]:
        """Processes that their liveness probes would have started again."""
        return [name for name in self._running if not self._probe(name, "livenessProbe")]

    def _probe(self, name: str, probe: str) -> bool:
        path = self._deployment.container(name.partition("-")[0])[probe]["httpGet"]["path"]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._ports[name]}{path}", timeout=10) as answer:
                return bool(answer.status == 200)
        except (OSError, http.client.HTTPException):
            return False

    def run(self, *command: str) -> "subprocess.CompletedProcess[str]":
        """Run a command as in one of the leader's containers."""
        return subprocess.run(
            [sys.executable, "-m", *command],
            env={**self.environment, **self.rights("leader")},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def kill(self, name: str) -> None:
        """kill -9."""
        self._end([name], signal.SIGKILL)
        self._killed.append(name)

    def ask_to_stop(self, name: str) -> "subprocess.Popen[bytes]":
        """SIGTERM; returns the process, which is no longer one of these."""
        process = self._running.pop(name)
        process.send_signal(signal.SIGTERM)
        return process

    def restart_redis(self) -> None:
        """kill -9 Redis and start it again."""
        self.redis.kill()
        self.redis.start()

    def lose_redis(self) -> None:
        """kill -9 Redis, and give it an empty disk at the same address."""
        self.redis.kill()
        shutil.rmtree(self.redis.folder)
        self.redis.start()

    def wait_for_workers(self) -> None:
        """Wait until every worker that runs has run a task from now on, as leaders ask them to every few seconds."""
        now_ms = time.time_ns() // 1_000_000
        wanted = {name for name in self._running if not name.startswith("leader")}

        def seen() -> bool:
            found = (self.state() or {}).get("workers", ())
            return wanted <= {each["name"].partition("@")[0] for each in found if each["seen_ms"] > now_ms}

        kernel.wait_until(f"all of {sorted(wanted)} run tasks", seen)

    def start_killed(self) -> None:
        """Start again what was killed."""
        while self._killed:
            self.start_one(self._killed.pop())

    def leading(self) -> str:
        """The name of the process that leads; waits until one does."""

        def found() -> str:
            identity = (self.state() or {}).get("leader") or ""
            return next((name for name, each in self._running.items() if f"-{each.pid}-" in identity), "")

        return kernel.wait_until(f"somebody leads\n{self.logs()}", found)

    def open(self) -> int | None:
        """How many pods stand in any queue or are reserved; None while Redis is away."""
        state = self.state()
        return sum(state["queues"].values()) + int(state["reservations"]) if state else None

    def state(self) -> Json | None:
        """What ``dsched status`` reads in Redis; None while that is away."""
        told = self.run("dsched", "status", "--output", "json")
        assert told.stdout, told.stderr
        found: Json | None = json.loads(told.stdout)["state"]
        return found

    def stop(self) -> None:
        """Ask all to end.

        Raises:
            AssertionError: one does not end well, or has logged a traceback.
        """
        codes = self._end(list(self._running), signal.SIGTERM)
        assert codes == dict.fromkeys(codes, 0), f"ended with {codes}\n{self.logs()}"
        assert not (found := self.tracebacks()), f"{found}\n{self.logs()}"

    def stop_at_once(self) -> None:
        """Leave nothing running, whatever happened."""
        self._end(list(self._running), signal.SIGKILL)

    def tracebacks(self) -> list[str]:
        """Errors that processes have logged with a traceback: log and last line."""
        texts = {path.name: path.read_text("utf-8", "replace") for path in self._logs()}
        found = [(name, line) for name, text in texts.items() for line in TRACEBACK.findall(text)]
        return [f"{name}: {line}" for name, line in found if not line.startswith(POOL_KILLED)]

    def logs(self) -> str:
        """The ends of all logs, for messages."""
        return "\n".join(f"== {path.name}\n{path.read_text(errors='replace')[-2500:]}" for path in self._logs())

    def _logs(self) -> list[Path]:
        return sorted(self.folder.glob("*.log"))

    def rights(self, component: str) -> dict[str, str]:
        """Evaluators get none, as their pods have no token."""
        if component == "evaluator":
            return {"KUBECONFIG": os.devnull}
        return {"KUBECONFIG": str(self._deployment.kubeconfig(component))}

    def _end(self, names: Iterable[str], number: signal.Signals) -> dict[str, int]:
        ending = {name: self._running.pop(name) for name in names}
        for process in ending.values():
            process.send_signal(number)
        return {name: process.wait(STOP_DEADLINE_S) for name, process in ending.items()}
