"""What the whole-system benchmarks have in common: equal nodes, pods of many kinds, and when binds were seen."""

import argparse
import time
from collections.abc import Callable, Collection, Sequence

from dsched.cluster.standalone.applying import Applier
from dsched.cluster.standalone.watch_log import WatchLog
from dsched.errors import DschedError
from dsched.manifests import load
from dsched.manifests.load import Manifest
from dsched.manifests.reader import Document
from dsched.model.queues import LABEL
from dsched.state.client import Store
from tests.manifests import node_manifest, pod_manifest

DEFAULT = "default-scheduler"
BOUND_S = 300.0
LOOK_S = 1.0
FIRST_PODS = 10
PODS_A_NODE = 110
SMALLEST_KI = 1024


class Binds:
    """Sees binds in the cluster's watch log as they are written: it blocks on the log and does not sample.

    It begins at the newest entry. Objects are not decoded.
    """

    def __init__(self, store: Store) -> None:
        self._log = WatchLog(store)
        self._version = self._log.now()

    def wait(self, keys: Collection[str], check: Callable[[], None], timeout_s: float = BOUND_S) -> float:
        """Wait until all pods with these keys are bound; when the last bind was read, by `time.perf_counter`.

        Args:
            check: is called when nothing came for a second; raises when waiting on makes no sense.

        Raises:
            DschedError: they are not bound in time; names the first that is not.
        """
        missing = set(keys)
        deadline = time.monotonic() + timeout_s
        while missing:
            entries = self._log.read(self._version, LOOK_S)
            seen = time.perf_counter()
            if entries:
                self._version = entries[-1][0]
                missing -= {
                    fields[b"key"].decode()
                    for _, fields in entries
                    if fields[b"kind"] == b"Pod" and fields[b"change"] == b"BOUND"
                }
            else:
                check()
            if missing and time.monotonic() >= deadline:
                raise DschedError(f"{len(missing)} pods are not bound after {timeout_s:g} s, {min(missing)} is one")
        return seen


def nodes(count: int) -> list[Manifest]:
    """Nodes with 4 cores, 8Gi and room for 110 pods."""
    return load.check(
        [Document("node", node_manifest(f"node-{number:05}", pods=str(PODS_A_NODE))) for number in range(count)]
    )


def pods(
    prefix: str,
    count: int,
    *,
    scheduler: str = DEFAULT,
    equal: bool = False,
    smallest_ki: int = SMALLEST_KI,
    queues: Sequence[str] = (),
) -> list[Manifest]:
    """Pods ``default/PREFIX-NUMBER`` that ask for next to nothing: only a node's room for 110 pods is used up.

    Args:
        equal: all request the same; else each requests another amount, so that none is judged by what is known of
            another.
        smallest_ki: what the first one requests, of memory.
        queues: those that they are of, by turns; none for no queue.
    """
    documents = []
    for number in range(count):
        requests = {"cpu": "1m", "memory": f"{smallest_ki + (0 if equal else number)}Ki"}
        containers = [{"name": "main", "image": "nginx", "resources": {"requests": requests}}]
        value = pod_manifest(f"default/{prefix}-{number}", containers=containers, schedulerName=scheduler)
        if queues:
            value["metadata"]["labels"] = {LABEL: queues[number % len(queues)]}
        documents.append(Document("pod", value))
    return load.check(documents)


def settle(store: Store, count: int, check: Callable[[], None], scheduler: str = DEFAULT) -> None:
    """Apply so many nodes and wait until the leader knows them.

    It takes changes in their order: a pod that is bound tells that it has heard of the nodes.

    Raises:
        DschedError: the first pods are not bound in time.
    """
    Applier(store).apply(nodes(count))
    warm(store, check, scheduler)


def warm(store: Store, check: Callable[[], None], scheduler: str = DEFAULT) -> None:
    """Bind a few pods one by one, so that the leader and the workers have done everything once.

    Raises:
        DschedError: they are not bound in time.
    """
    applier, binds = Applier(store), Binds(store)
    for pod in pods(f"first-{scheduler}", FIRST_PODS, scheduler=scheduler, smallest_ki=SMALLEST_KI // 2):
        applier.apply([pod])
        binds.wait([pod.key], check)


def check_room(parser: argparse.ArgumentParser, node_count: int, pod_count: int) -> None:
    """End with a usage error when so many pods, beside the first ones, do not fit on so many nodes."""
    room = PODS_A_NODE * node_count
    if pod_count + FIRST_PODS > room:
        parser.error(f"{pod_count} pods and {FIRST_PODS} to begin with do not fit on nodes with room for {room}")


def positive(text: str) -> int:
    """An option's number, from 1 on."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 on")
    return number
