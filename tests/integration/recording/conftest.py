"""A leader that is driven step by step, with somebody who records."""

import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from dsched.config import SchedulerConfiguration
from dsched.framework.interface import Registry
from dsched.model.tape import Line
from dsched.recording.comparison import Comparing, Comparison
from dsched.recording.files import Reading, RecordingFile
from dsched.recording.recorder import Recorder
from dsched.state import keys
from dsched.state.client import Store
from dsched.state.recording import Listening
from tests.integration.leader.rig import Led, Rig

MakeRig = Callable[[], Rig]


@pytest.fixture
def make_rig(connect: Callable[[str], Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeRig:
    """Systems of their own."""
    return lambda: Rig(connect(f"test-{uuid.uuid4().hex}"), tmp_path, monkeypatch)


@pytest.fixture
def rig(make_rig: MakeRig) -> Rig:
    """A system of its own."""
    return make_rig()


class Taped:
    """A recorder beside a rig.

    Attributes:
        path: its file.
    """

    def __init__(self, rig: Rig, folder: Path) -> None:
        self.rig = rig
        self.path = folder / f"{uuid.uuid4().hex}.jsonl.gz"
        self.listening = Listening(rig.store, "test")
        self.listening.begin()
        self.file = RecordingFile(self.path, rig.store.name, rig.clock.now_ms())
        self.recorder = Recorder(self.listening, self.file)

    def seen_by(self, led: Led) -> None:
        """The leader looks, and tells everything."""
        led.term.recording.look()

    def take(self) -> None:
        """Write down what was told."""
        while self.rig.store.redis.xlen(self.rig.store.key(keys.RECORDING.name)):
            self.recorder.step()
            self.recorder._flush()

    def lines(self) -> list[Line]:
        """What is in the file once it is complete."""
        self.take()
        self.recorder.end("test", self.rig.clock.now_ms())
        self.listening.end()
        reading = Reading(self.path)
        try:
            found = list(reading.lines())
            assert reading.ended is not None
        finally:
            reading.close()
        return found


MakeTape = Callable[[Rig], Taped]


@pytest.fixture
def tape(tmp_path: Path) -> Iterator[MakeTape]:
    """Begins to record a rig."""
    made: list[Taped] = []

    def begin(rig: Rig) -> Taped:
        made.append(Taped(rig, tmp_path))
        return made[-1]

    yield begin
    for taped in made:
        taped.file.close()


def replayed(
    lines: Iterable[Line], plugins: Registry, configured: SchedulerConfiguration | None = None, seed: int | None = None
) -> Comparison:
    """What a replay comes to."""
    return comparing(lines, plugins, configured, seed).conclude()


def comparing(
    lines: Iterable[Line], plugins: Registry, configured: SchedulerConfiguration | None = None, seed: int | None = None
) -> Comparing:
    """A replay that has run."""
    made = Comparing(None if configured is None else lambda _: configured, plugins, seed)
    made.run(lines)
    return made
