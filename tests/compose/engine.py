"""A container engine for tests: Docker's daemon in network, mount and process namespaces of its own, so that its rules,
mounts and containers are seen by nobody else and end with it. Images are built from stand-ins: see make-stand-ins."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.acceptance.processes import wait_until

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dsched"
PROGRAMS = ("dockerd", "containerd", "docker", "debootstrap", "unshare", "nsenter", "ip", "iptables")
INDEX_PORT = 8099
FIRST_S = 2400.0
"""What the first test here may take, whichever it is: stand-ins, engine and image are made in its name."""
COMMAND_S = 1500.0
"""A command that takes this long hangs; building the image takes minutes on a busy machine."""
_START = """
set -eu
mount --make-rprivate /
mount -t tmpfs tmpfs /run
ip link set lo up
exec dockerd --data-root "$1/data" --exec-root "$1/exec" --pidfile "$1/pid" --host "unix://$1/docker.sock" \
    --group 0 --cgroup-parent "$2"
"""
_STAND_INS = {
    "python:3.12-slim": (
        "ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8\nCMD python3\n"
    ),
    "redis:7.4-alpine": "RUN mkdir /data && chown redis:redis /data\nVOLUME /data\nWORKDIR /data\n",
    "prom/prometheus:v3.5.0": (
        "RUN mkdir -p /etc/prometheus /prometheus && chown nobody /prometheus\nUSER nobody\nVOLUME /prometheus\n"
        'WORKDIR /prometheus\nENTRYPOINT ["/usr/bin/prometheus"]\n'
    ),
}
"""What the official images of these names have besides programs."""


class NoEngine(Exception):
    """This machine cannot run containers, or has nothing to build images from; says why."""


class Engine:
    """One daemon, with a folder of its own.

    Args:
        folder: for everything that it keeps; a short path, because there is a socket in it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._cgroup = f"dsched-test-{os.getpid()}"
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start it, and load what images are built from.

        Raises:
            NoEngine: this machine cannot.
        """
        stand_ins = _stand_ins()
        self.folder.mkdir(parents=True, exist_ok=True)
        words = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", _START]
        daemon = self._popen([*words, "sh", str(self.folder), self._cgroup], "daemon")
        try:
            wait_until("the engine answers", lambda: daemon.poll() is not None or self._answers(), 60.0)
            if daemon.poll() is not None:
                told = (self.folder / "daemon.log").read_text().strip().splitlines()
                raise NoEngine(f"dockerd does not start here: {told[-1] if told else 'it said nothing'}")
            self.run(["docker", "import", "--change", "CMD sh", str(stand_ins / "debian.tar"), "stand-in"])
            for name, text in _STAND_INS.items():
                self.run(["docker", "build", "--quiet", "--tag", name, "-"], told=f"FROM stand-in\n{text}")
            serve = ["-m", "http.server", str(INDEX_PORT), "--directory", str(stand_ins)]
            self._popen([*self._inside(), sys.executable, *serve], "index")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it with all its containers, and leave nothing behind."""
        while self._processes:
            process = self._processes.pop()
            # The daemon is the first process of its namespace: told to end, it stops containers; killed, it ends all.
            with contextlib.suppress(ProcessLookupError, IndexError):
                os.kill(_child(process), signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
        for folder in [*Path("/sys/fs/cgroup").glob(f"*/{self._cgroup}"), Path("/sys/fs/cgroup") / self._cgroup]:
            for path, _, _ in os.walk(folder, topdown=False):
                with contextlib.suppress(OSError):
                    Path(path).rmdir()

    def environment(self) -> dict[str, str]:
        """A reader's, whose machine has this engine, and an index of wheels in the place of PyPI."""
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("DSCHED_", "PIP_", "COMPOSE_"))
        }
        gateway = "172.17.0.1"
        return kept | {
            "DOCKER_HOST": f"unix://{self.folder}/docker.sock",
            "DOCKER_CONFIG": str(self.folder / "config"),
            # The packaged client, whatever else is installed.
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", os.environ["PATH"]]),
            "PYTHON_IMAGE": "python:3.12-slim",
            "DSCHED_REDIS_IMAGE": "redis:7.4-alpine",
            "DSCHED_PROMETHEUS_IMAGE": "prom/prometheus:v3.5.0",
            "PIP_INDEX_URL": f"http://{gateway}:{INDEX_PORT}/simple/",
            "PIP_TRUSTED_HOST": gateway,
        }

    def run(
        self,
        words: Sequence[str],
        told: str | None = None,
        check: bool = True,
        **environment: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in a checkout on a machine that has this engine: published ports are on its loopback."""
        done = subprocess.run(
            [*self._inside(), *words],
            cwd=ROOT,
            env=self.environment() | environment,
            input=told,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_S,
        )
        if check:
            assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done

    def output(self, *words: str, **environment: str) -> str:
        return self.run(words, **environment).stdout

    def cpu_s(self, container: str) -> float:
        """Seconds of CPU that a container has used so far, with what its health checks have used inside."""
        number = self.output("docker", "inspect", "--format", "{{.Id}}", container).strip()
        v1 = Path("/sys/fs/cgroup/cpuacct") / self._cgroup / number / "cpuacct.usage"
        if v1.exists():
            return int(v1.read_text()) / 1e9
        text = (Path("/sys/fs/cgroup") / self._cgroup / number / "cpu.stat").read_text()
        return int(text.split()[1]) / 1e6

    def _inside(self) -> list[str]:
        return ["nsenter", "--net", "--target", str(_child(self._processes[0])), "--"]

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as asking, contextlib.suppress(OSError):
            asking.connect(str(self.folder / "docker.sock"))
            return True
        return False

    def _popen(self, words: Sequence[str], name: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._processes.append(process)
        return process


def _child(process: subprocess.Popen[bytes]) -> int:
    """The one child of a process, or the process itself when it has none."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return int((children.read_text().split() or [process.pid])[0])


def _stand_ins() -> Path:
    if os.geteuid() != 0:
        raise NoEngine("only root can start an engine of its own")
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        raise NoEngine(f"{', '.join(missing)} missing: apt-get install docker.io docker-compose debootstrap iproute2")
    environment: Mapping[str, str] = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = [str(HERE / "make-stand-ins")]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode:
        raise NoEngine((done.stderr.strip().splitlines() or ["make-stand-ins said nothing"])[-1])
    return Path(done.stdout.strip())
