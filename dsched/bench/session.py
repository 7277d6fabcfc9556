"""A system for each workload: a whole one of real processes, in a folder of its own, started and stopped here."""

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dsched.clock import SystemClock
from dsched.emulation import NOTHING, Asked
from dsched.errors import DschedError
from dsched.state import client
from dsched.state.client import Store
from dsched.supervisor import background, commands

STOP_S = 60.0
SEED = "DSCHED_SEED"
"""Read by `dsched leader`."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the systems are like.

    Attributes:
        redis_url: of a Redis that runs already; each workload gets a name of its own on it. None for an embedded one.
        config: a KubeSchedulerConfiguration.
        emulated: the version and the feature gates.
        metrics_port: the leader's port for metrics, the workers have the next ones; None for none.
    """

    mode: str = "auto"
    evaluators: int = 2
    binders: int = 2
    seed: int = 0
    redis_url: str | None = None
    config: Path | None = None
    metrics_port: int | None = None
    emulated: Asked = NOTHING


@dataclass(frozen=True, slots=True)
class Running:
    """A system that runs."""

    store: Store
    data_dir: Path

    def check(self) -> None:
        """
        Raises:
            DschedError: one of its processes keeps dying.
        """
        background.check(self.data_dir)


@contextmanager
def system(shape: Shape) -> Iterator[Running]:
    """A fresh system for as long as the block lasts; its data goes with it, unless it failed.

    Raises:
        DschedError: it does not start; its logs are kept.
    """
    data_dir = Path(tempfile.mkdtemp(prefix="dsched-bench-"))
    name = f"bench-{secrets.token_hex(4)}"
    wanted = commands.System(
        data_dir,
        redis_url=shape.redis_url,
        name=name,
        evaluators=shape.evaluators,
        binders=shape.binders,
        config=shape.config,
        mode=shape.mode,
        metrics_port=shape.metrics_port,
        emulated=shape.emulated,
    )
    clock = SystemClock()
    kept = False
    try:
        with _variable(SEED, str(shape.seed)):
            found = background.start(wanted, clock, survives=False)
        store = client.connect(found.redis_url, found.name)
        try:
            yield Running(store, data_dir)
        finally:
            background.stop(data_dir, STOP_S, clock)
            if shape.redis_url is not None:
                _clear(store)
            store.close()
    except DschedError as error:
        kept = True
        raise DschedError(f"{error}\nthe logs are kept in {data_dir / 'logs'}") from error
    finally:
        if not kept:
            shutil.rmtree(data_dir, ignore_errors=True)


@contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    """An environment variable for what is started in the block."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _clear(store: Store) -> None:
    """Take the system's keys off a Redis that stays."""
    with client.reachable(store):
        names = store.names("")
        for start in range(0, len(names), 1000):
            store.redis.unlink(*names[start : start + 1000])
