"""Speaks for the processes of a worker's pool that cannot: those that a plugin holds up, and those that are lost.

It lives in the process that the pool is forked from. A leader that waits for a shard hears, before its patience ends,
which plugin keeps it; and at once, when the process is lost, so that it neither waits nor runs that plugin itself.
Killed together with the pool, it says nothing: that is a worker that is gone, and nobody's plugin is to blame.
"""

import contextlib
import threading
from collections.abc import Callable
from typing import Any

import msgspec
from celery.exceptions import TimeLimitExceeded, WorkerLostError
from celery.signals import task_failure

from dsched.log import logger
from dsched.metrics import PLUGIN_OVERRUNS
from dsched.model import messages
from dsched.model.messages import BIND, EVALUATE, BindRequest, EvaluateShard, ShardResult, Trouble
from dsched.state import replies
from dsched.state.client import UNAVAILABLE, Store, WrongType
from dsched.state.results import PROCESS_LOST, Binds, Outcome
from workers.running_plugins import RunningPlugins, Slot

_log = logger(__name__)

LOOK_EVERY_S = 0.25
SLOW_S = 0.5
"""A shard is spoken of after a plugin has run for so long: shorter than the leader's shortest patience."""


class PoolMonitor:
    """Watches the pool of one worker."""

    def __init__(self, connect: Callable[[], Store], slots: RunningPlugins) -> None:
        """
        Args:
            connect: opens a connection of its own, once the pool has been forked.
        """
        self.name = ""
        self._connect = connect
        self._slots = slots
        self._store: Store | None = None
        self._over = threading.Event()
        self._told: set[tuple[str, int, float]] = set()

    def start(self, name: str) -> None:
        """The pool has been forked."""
        self.name = name
        self._store = self._connect()
        task_failure.connect(self._failed, weak=False)
        threading.Thread(target=self._watch, name="pool-monitor", daemon=True).start()

    def close(self) -> None:
        """The worker ends."""
        self._over.set()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_EVERY_S):
            busy = {(slot.request, slot.shard, slot.since): slot for slot in self._slots.busy()}
            self._told &= busy.keys()
            for key, slot in busy.items():
                if key not in self._told and slot.seconds() > SLOW_S and slot.request != "-":
                    self._told.add(key)
                    self._say(slot.request, slot.shard, Trouble(slot.at, slot.plugin, slot.seconds()))

    def _say(self, request: str, shard: int, trouble: Trouble, epoch: int = 0) -> None:
        if self._store is None:
            return
        word = ShardResult(request=request, epoch=epoch, shard=shard, evaluator=self.name, seconds=0, trouble=trouble)
        with contextlib.suppress(*UNAVAILABLE, WrongType):  # the leader goes by its patience then
            replies.push(self._store, request, messages.encode(word))

    def _failed(self, sender: Any = None, exception: Any = None, args: Any = (), **_: Any) -> None:
        """Celery's word that a task failed; of interest where the process was lost with it."""
        if not isinstance(exception, WorkerLostError | TimeLimitExceeded):
            return
        try:
            if sender.name == EVALUATE:
                self._lost_shard(messages.decode(args[0], EvaluateShard), str(exception))
            elif sender.name == BIND:
                self._lost_bind(messages.decode(args[0], BindRequest), str(exception))
        except msgspec.MsgspecError:
            return

    def _lost_shard(self, message: EvaluateShard, why: str) -> None:
        slot = self._slot(message.request, message.shard)
        if slot is None:
            return
        self._note(slot, message.pods[slot.at][1].key, why)
        self._say(
            message.request, message.shard, Trouble(slot.at, slot.plugin, slot.seconds(), lost=why), message.epoch
        )

    def _lost_bind(self, message: BindRequest, why: str) -> None:
        slot = self._slot(f"bind-{message.pods[0].uid}", 0) if message.pods else None
        if slot is None or self._store is None:
            return
        item = message.pods[slot.at]
        self._note(slot, item.key, why)
        text = f'running plugin "{slot.plugin}": the process was lost'
        outcome = Outcome(item.key, item.uid, item.node, PROCESS_LOST, text, item.attempt, slot.plugin)
        with contextlib.suppress(*UNAVAILABLE, WrongType):
            Binds(self._store).report(message.epoch, self.name, [outcome])

    def _slot(self, request: str, shard: int) -> Slot | None:
        found = [slot for slot in self._slots.busy() if slot.request == request and slot.shard == shard]
        return found[0] if found else None

    def _note(self, slot: Slot, pod: str, why: str) -> None:
        PLUGIN_OVERRUNS.labels(slot.plugin, "lost").inc()
        _log.error(
            "a process was lost while it ran a plugin",
            extra={"action": "lost", "plugin": slot.plugin, "pod": pod, "pid": slot.pid, "error": why},
        )
