"""Tells a recorder what the leader has in memory, what changes in it, and what it decides; while nobody records, it
costs a question a second.

Everything is gathered in the loop, in the order in which it happens, and written once a turn; so a decision stands
behind exactly what it has seen. Killed before it is written: the recording ends there, and the next leader begins anew.
A recorder who does not keep up, or a Redis that is full, ends the telling, never the leading.
"""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from dsched import __version__, emulation
from dsched.clock import Clock
from dsched.config import SchedulerConfiguration, shown
from dsched.engine.diagnosis import Diagnosis
from dsched.engine.select import Selector
from dsched.errors import RedisUnavailable
from dsched.log import logger
from dsched.metrics import RECORDED, RECORDING_INTERRUPTED
from dsched.model import tape
from dsched.model.meta import PodUid
from dsched.model.tape import Line
from dsched.scheduler.cache import Cache
from dsched.scheduler.decision import Candidate, Decision, GroupDecision, choice, group_choices, told_by_pod
from dsched.scheduler.observer import Observer
from dsched.scheduler.queue import PendingPods, QueuedPod
from dsched.scheduler.waiting_pods import WaitingPods
from dsched.state.recording import ENTRY_BYTES, MOST_WAITING, RecordingStream, Taken

_log = logger(__name__)

LOOK_EVERY_S = 1.0
"""How often it is looked whether somebody records."""


class RecordingObserver(Observer):
    """Tells, for one epoch."""

    def __init__(
        self,
        wire: RecordingStream,
        configured: SchedulerConfiguration,
        cache: Cache,
        pending: PendingPods,
        waiting: WaitingPods,
        selector: Selector,
        clock: Clock,
    ) -> None:
        self._wire = wire
        self._configured = configured
        self._cache = cache
        self._pending = pending
        self._waiting = waiting
        self._selector = selector
        self._clock = clock
        self._token = ""
        self._given_up = ""
        self._number = 0
        self._lines: list[bytes] = []
        self._same_turn = False
        self._preempting: dict[PodUid, dict[str, str]] = {}
        self._decided_ms = 0
        self._worded: tuple[Diagnosis, str] | None = None

    @property
    def on(self) -> bool:
        """Whether somebody records."""
        return bool(self._token)

    def look(self) -> None:
        """See whether somebody records now; tell him everything when he is new, or when he has caught up.

        Raises:
            StaleEpoch: another leader has taken over.
        """
        asked = self._wire.asked_by()
        if not asked:
            self._end()
            self._given_up = ""
        elif asked != self._token and (asked != self._given_up or self._wire.waiting() < MOST_WAITING // 4):
            self._begin(asked)

    def _begin(self, token: str) -> None:
        self._end()
        self._token, self._given_up, self._number = token, "", 0
        _log.info("recording", extra={"action": "record", "epoch": self._wire.epoch})
        for line in self._everything():
            self._lines.append(tape.encode(line))
            if len(self._lines) >= _LINES_AT_ONCE:
                self._write(bounded=False)
                if not self.on:
                    return
        self._write(bounded=False)
        if self.on:
            self._listen(self.heard)

    def _end(self, why: str = "") -> None:
        if self.on:
            _log.info("no longer recording", extra={"action": "record", "reason": why or "the recorder has gone"})
        self._token = ""
        self._lines = []
        self._listen(None)

    def _listen(self, heard: Any) -> None:
        self._cache.heard = self._pending.heard = self._cache.snapshot.nominations.heard = heard

    def heard(self, line: Line) -> None:
        """Something has changed."""
        if isinstance(line, tape.Happened):
            line = replace(line, at_ms=self._clock.now_ms())
        self._lines.append(tape.encode(line))

    def turned(self) -> None:
        """Write what has been gathered in a turn.

        Raises:
            StaleEpoch: another leader has taken over.
        """
        if self._lines:
            self._write()
        self._same_turn = False

    def _write(self, *, bounded: bool = True) -> None:
        lines, self._lines = self._lines, []
        for chunk in _chunks(lines):
            self._number += 1
            try:
                taken = self._wire.append(self._token, self._number, chunk, bounded=bounded)
            except RedisUnavailable as error:  # full; what the leader itself writes will say so, if it must
                self._give_up(str(error))
                return
            if taken is Taken.NOBODY:
                self._end()
                return
            if taken is Taken.FULL:
                self._give_up("the recorder does not keep up")
                return
            RECORDED.inc(len(chunk))

    def _give_up(self, why: str) -> None:
        given_up = self._token
        self._end(why)
        self._given_up = given_up
        RECORDING_INTERRUPTED.inc()
        _log.warning("recording is interrupted", extra={"action": "record", "reason": why})

    # -- everything there is ---------------------------------------------------------------------------------------

    def _everything(self) -> list[Line]:
        snapshot = self._cache.snapshot
        version, gates = emulation.written(self._configured.features)
        lines: list[Line] = [
            tape.Began(
                at_ms=self._clock.now_ms(),
                epoch=self._wire.epoch,
                seed=self._selector.seed,
                config=shown(self._configured),
                config_hash=self._configured.hash,
                next_start=self._selector.next_start,
                dsched=__version__,
                token=self._token,
                version=version,
                gates=gates,
            )
        ]
        lines += [tape.NodeIs(node) for node in snapshot.table.nodes]
        lines += [tape.ObjectIs(kind, key, dict(value)) for kind, key, value in snapshot.every_other()]
        for node, info in snapshot.table.placed():
            if self._cache.assumed_on(info.uid) is None:
                lines.append(tape.PodOn(node, info.pod))
                continue
            waiting = self._waiting.get(info.uid)
            held = (None, 0) if waiting is None else (dict(waiting.holding), waiting.since_ms)
            lines.append(tape.Reserved(node, info.pod, *held))
        lines += [
            tape.Pending(pod.info.pod, pod.queued_us, pod.attempts, tuple(sorted(pod.plugins)), pod.place)
            for pod in self._pending
        ]
        nominations = snapshot.nominations
        lines += [tape.Promised(info.uid, node) for node in nominations.nodes() for info in nominations.on(node)]
        lines.append(tape.Ready())
        return lines

    # -- decisions -------------------------------------------------------------------------------------------------

    def before_decide(self, batch: Sequence[Candidate]) -> None:
        """Take down what preemption has brought pods of the batch so far; what its decisions change is not told."""
        if not self.on:
            return
        self._preempting.clear()
        for candidate in batch:
            pod: QueuedPod | None = self._pending.get(candidate.info.key)
            fields = pod.nomination.fields() if pod is not None and pod.nomination is not None else {}
            if fields:
                self._preempting[candidate.info.uid] = {name: str(value) for name, value in fields.items()}
        self._listen(None)
        self._decided_ms = self._clock.now_ms()

    def decided(self, decisions: Sequence[Decision | GroupDecision]) -> None:
        """Tell them."""
        if not self.on:
            return
        choices = tuple(self._choice(decision) for decision in told_by_pod(decisions))
        told = tape.Decided(self._decided_ms, choices, self._same_turn, group_choices(decisions))
        self._lines.append(tape.encode(told))
        self._listen(self.heard)
        self._same_turn = True

    def _choice(self, decision: Decision) -> tape.Choice:
        before = self._preempting.get(decision.candidate.info.uid)
        return choice(decision, "" if decision.node is not None else self._message(decision), before)

    def _message(self, decision: Decision) -> str:
        """Pods of a class that fail one after the other are told the same."""
        if decision.error is not None or decision.diagnosis is None:
            return decision.message
        if self._worded is None or self._worded[0] != decision.diagnosis:
            self._worded = (decision.diagnosis, decision.message)
        return self._worded[1]


_LINES_AT_ONCE = 2000


def _chunks(lines: Sequence[bytes]) -> list[bytes]:
    """Lines in pieces of about the length of an entry."""
    chunks: list[bytes] = []
    gathered: list[bytes] = []
    held = 0
    for line in lines:
        gathered.append(line)
        held += len(line) + 1
        if held >= ENTRY_BYTES:
            chunks.append(b"\n".join(gathered) + b"\n")
            gathered, held = [], 0
    if gathered:
        chunks.append(b"\n".join(gathered) + b"\n")
    return chunks
