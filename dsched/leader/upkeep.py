"""Keeps what stands in Redis fit to be read: whatever somebody else has written among it is told, counted and cleared.

What a leader writes is written anew from what it knows. Of what scheduling depends on, a key of another type means that
all of it may be lost: the term ends and the next one begins from the cluster, as after Redis was emptied.
"""

from dsched.errors import StateError
from dsched.leader.unreadable import set_aside
from dsched.log import logger
from dsched.state import keys, leader_config, misfits, redis_check, workers
from dsched.state.client import Store
from dsched.state.leader_config import LeaderConfig
from dsched.state.node_log import NodeLog

_log = logger(__name__)

TOLD_AT_ONCE = 20
"""Lines in the log at a look; all are counted."""
_DECIDES = frozenset(keys.names(*keys.QUEUES_AND_RESERVATIONS, keys.INTAKE, keys.RESULTS))


class Upkeep:
    """For one epoch.

    Args:
        told: what workers are told of the configuration; None where nothing was published.
    """

    def __init__(self, store: Store, epoch: int, log: NodeLog, told: LeaderConfig | None = None) -> None:
        self._store = store
        self._epoch = epoch
        self._log = log
        self._told = told

    def begin(self) -> None:
        """Before taking over.

        Raises:
            StaleEpoch: another leader has taken over.
            UnfitRedis: as `look`.
        """
        redis_check.check(self._store, keeps_objects=False)
        misfits.drop_former(self._store, self._epoch)
        self._cleared(misfits.drop(self._store, self._epoch, misfits.SINGLE))

    def look(self) -> None:
        """See to everything that can be seen at once.

        Raises:
            UnfitRedis: Redis may evict keys by now, so part of the state may be gone at any time.
            StateError: what scheduling depends on was lost; the leader has to start over from the cluster.
            StaleEpoch: another leader has taken over.
        """
        redis_check.check(self._store, keeps_objects=False)
        if found := misfits.find(self._store):
            names = self._cleared(misfits.drop(self._store, self._epoch, found))
            if lost := sorted(_DECIDES.intersection(names)):
                raise StateError(f"{', '.join(lost)} held what dsched does not write there")
        self._workers()
        self._configuration()
        if wrong := self._log.check():
            set_aside(keys.NODES_LOG.name, "", wrong)

    def clear(self) -> None:
        """A key of another type was met: clear all of them away, those of single pods and nodes, too. What stood in
        them is found in the cluster by the next takeover.

        Raises:
            StaleEpoch: another leader has taken over.
        """
        self._cleared(misfits.drop_all(self._store, self._epoch))

    def _cleared(self, dropped: dict[str, str]) -> list[str]:
        for number, (name, kind) in enumerate(dropped.items()):
            beginning = name.partition(":")[0] + ":"
            family = beginning if beginning in keys.names(*misfits.FAMILIES) else name
            set_aside(family, name, f"was a {kind}", quiet=number >= TOLD_AT_ONCE)
            if name == keys.NODES_LOG.name:
                self._log.begin_anew()
        return list(dropped)

    def _workers(self) -> None:
        _, garbage = workers.look(self._store)
        for number, (name, text) in enumerate(garbage.items()):
            set_aside(keys.WORKERS.name, name, text, quiet=number >= TOLD_AT_ONCE)
        if garbage:
            workers.drop(self._store, garbage)

    def _configuration(self) -> None:
        """A leader whose configuration another one has told meanwhile no longer leads: the epoch is checked."""
        if self._told is None:
            return
        there = leader_config.read(self._store)
        if there != self._told:
            why = "is not there" if there is None else f"says {there.hash}, the leader has {self._told.hash}"
            set_aside(keys.CONFIGURATION.name, "", why)
            leader_config.publish(self._store, self._told)
