"""``dsched ui`` as a process of its own."""

import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.acceptance.processes import wait_until
from tests.acceptance.system import System, dsched

PATIENCE_S = 120.0
_URL = re.compile(r"^dsched ui: (https?://\S+)/$", re.MULTILINE)


@dataclass(frozen=True)
class Served:
    """A page that is served.

    Attributes:
        url: without a slash at its end.
        said: what the command printed.
    """

    url: str
    said: str
    process: "subprocess.Popen[bytes]"
    log: Path

    def get(self, path: str, **options: object) -> httpx.Response:
        """Ask."""
        return httpx.get(self.url + path, timeout=PATIENCE_S, **options)  # type: ignore[arg-type]

    def stop(self) -> int:
        """Ask it to end; its exit code."""
        self.process.terminate()
        return self.process.wait(PATIENCE_S)


@contextmanager
def served(system: System, *options: str, variables: Mapping[str, str] | None = None) -> Iterator[Served]:
    """Serve a page about a system on a free port."""
    log = system.folder / f"ui{len(list(system.folder.glob('ui*.log')))}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            dsched("ui", "--port", "0", *system.where(), *options),
            env={**system.environment, **(variables or {})},
            cwd=system.folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:

        def found() -> "re.Match[str] | None":
            assert process.poll() is None, log.read_text()
            return _URL.search(log.read_text()) if "stop:" in log.read_text() else None

        url = wait_until("the page is served", found)[1]
        yield Served(url.replace("//0.0.0.0:", "//127.0.0.1:"), log.read_text(), process, log)
    finally:
        process.kill()
        process.wait(PATIENCE_S)
