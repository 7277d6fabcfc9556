"""What runs: the calls from the cycle to a plugin, and a pod's way through the files, in the checkout on the path.

Run by `scripts.structure` in a process of its own, so that another revision can be measured with this same file; prints
JSON. Both walks drive ``tests/integration/leader/rig.py``: a whole leader in one thread over a Redis of their own, with
a clock that stands still. That is the leader's own code with the default configuration: its sums, its commit, whatever
stands around the cycle (the recording's wrapper, the explanations), and its scripts in Redis. It differs from a
leader's process in four things. Changes and results are read without the threads that wait for them. Requests to
binders are kept in a list instead of being sent through Celery. Plugins' calls, of which one in ten is measured by
chance, are not. Traces and extenders are off, as they are by default.

Calls are Python functions that begin. A comprehension or a generator expression is part of the function around it: from
Python 3.12 on it has no frame of its own, so that both count the same.
"""

import json
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from types import FrameType
from typing import Any

ROOMS = ("dsched", "workers")
FILTERS = {"filter", "filter_table", "filter_few"}
INSIDE = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}
NODES = 3
WARMING = 3
"""Pods of the class that are bound before the one whose way is measured."""
CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled:
      - name: NodeByNode
"""


class NodeByNode:
    """A filter as users write it."""

    name = "NodeByNode"

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def filter(self, state: Any, pod: Any, node: Any) -> None:
        """Every node will do."""


class Patching:
    """As much of pytest's monkeypatch as the rig needs; nothing is put back, for the process ends."""

    def setattr(self, target: Any, name: str, value: Any) -> None:
        setattr(target, name, value)


@contextmanager
def profiled(called: Callable[[FrameType], None]) -> Iterator[None]:
    """Tell of each call in this thread meanwhile."""

    def profile(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and frame.f_code.co_name not in INSIDE:
            called(frame)

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)


def shown(frame: FrameType, root: Path) -> str:
    """A frame, as ``dsched/scheduler/cycle.py Cycle.decide``."""
    path = Path(frame.f_code.co_filename)
    return f"{path.relative_to(root) if path.is_relative_to(root) else path.name} {frame.f_code.co_qualname}"


def frames_from_decide(frame: FrameType | None, root: Path) -> tuple[list[str], int]:
    """The calls that led to this frame, outermost first, from the first function ``decide``, with the frame itself; and
    how many of them there are from the first method ``decide`` of a class that is called ``…Cycle``. What is wrapped
    around the cycle counts. Nothing and 0 where there is no such method."""
    found: list[str] = []
    first = cycle = 0
    while frame is not None:
        if frame.f_code.co_name not in INSIDE:
            found.append(shown(frame, root))
            if frame.f_code.co_name == "decide":
                first = len(found)
                if type(frame.f_locals.get("self")).__name__.endswith("Cycle"):
                    cycle = first
        frame = frame.f_back
    return (found[:first][::-1], cycle) if cycle else ([], 0)


def way(calls: list[str]) -> dict[str, int]:
    """Calls, distinct files among them, and how often a call is in another file than the call before it."""
    changes = sum(one != other for one, other in pairwise(calls))
    return {"calls": len(calls), "files": len(set(calls)), "changes": changes}


def walk_to_filter(rig: Any, own: Any, root: Path) -> dict[str, tuple[list[str], int]]:
    """The longest way to a filter in each of four situations, as `frames_from_decide` says it.

    Args:
        rig: a system with nodes and the default plugins.
        own: another one, with `NodeByNode` among the plugins.
    """
    from tests.manifests import pod_manifest

    found: dict[str, tuple[list[str], int]] = {}
    leaders = {id(rig): rig.lead(), id(own): own.lead()}
    steps = [
        ("the first pod of a class", rig, "one", "red"),
        ("the next pod of that class", rig, "two", "red"),
        ("a pod of a class like it", rig, "three", "blue"),
        ("a plugin that is asked node by node", own, "one", "red"),
    ]
    for label, system, name, colour in steps:
        system.apply(pod_manifest(f"walks/{name}", labels={"colour": colour}))

        def called(frame: FrameType, label: str = label, wanted: bool = system is own) -> None:
            if frame.f_code.co_name not in FILTERS:
                return
            in_tree = "plugins" in Path(frame.f_code.co_filename).parts
            if in_tree if not wanted else isinstance(frame.f_locals.get("self"), NodeByNode):
                found[label] = max(found.get(label, ([], 0)), frames_from_decide(frame, root), key=itemgetter(1))

        with profiled(called):
            leaders[id(system)].run()
    return found


def walk_of_a_pod(rig: Any, bind: Callable[[bytes], None], root: Path) -> tuple[list[str], list[str]]:
    """The files of the calls that a pod of a class that the leader knows causes, in order; and those of a turn of the
    leader in which nothing happens.

    Counted are one turn of the leader, which hears of the pod, decides it, reserves it and hands it out; the binder's
    task; and one more turn of the leader, which hears that the pod is bound. So what every turn does is among them,
    twice. Files of ``dsched`` and ``workers`` count, of libraries and of tests not.

    Args:
        bind: does what a binder does with a message.
    """
    from dsched.model import messages
    from tests.manifests import pod_manifest

    calls: list[str] = []

    def called(frame: FrameType) -> None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(root) and path.relative_to(root).parts[0] in ROOMS:
            calls.append(str(path.relative_to(root)))

    led = rig.lead()
    for number in range(WARMING + 1):
        key = f"walks/pod-{number}"
        rig.apply(pod_manifest(key, uid=f"00000000-0000-4000-8000-00000000000{number}"))
        watched: Callable[[], Any] = nullcontext if number < WARMING else lambda: profiled(called)
        with watched():
            led.turn()
        payloads = [messages.encode(request) for request in led.requests()]
        with watched():
            for payload in payloads:
                bind(payload)
        with watched():
            led.turn()
        if len(payloads) != 1 or not rig.node_of(key) or rig.reserved() or rig.record(key):
            raise RuntimeError(f"{key} was not bound in two turns: {rig.record(key)}, {rig.reserved()}")
    pod = calls.copy()
    calls.clear()
    with profiled(called):
        led.turn()
    return pod, calls


def measure(root: Path) -> dict[str, Any]:
    """Both walks, over a Redis that runs meanwhile."""
    random.random = lambda: 1.0
    # Only from here on: what draws by chance takes the function when it is imported.
    from dsched.state import client
    from tests.integration.leader.rig import Rig
    from tests.manifests import node_manifest
    from tests.redis_server import RedisServer

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = RedisServer(folder / "redis")
        server.start()
        try:

            def system(called: str) -> Any:
                rig = Rig(client.connect(server.url, called), folder, Patching())
                labels = [f"n{number}" for number in range(NODES)]
                rig.apply(*(node_manifest(each, labels={"kubernetes.io/hostname": each}) for each in labels))
                return rig

            own = system("own")
            own.configure(CONFIGURATION, NodeByNode)
            frames = walk_to_filter(system("frames"), own, root)
            pod, idle = walk_of_a_pod(system("pod"), task_of_a_binder(server.url, "pod"), root)
        finally:
            server.stop()
    return {"frames": frames, "way": way(pod), "idle": way(idle), "files": dict(Counter(pod).most_common())}


def task_of_a_binder(url: str, name: str) -> Callable[[bytes], None]:
    """What a binder's process runs for a message, in this process; Celery's own code around it is not of interest."""
    os.environ |= {"DSCHED_REDIS_URL": url, "DSCHED_NAME": name}  # where the module looks when it is imported
    module = import_module("workers.binder")
    task = module.app.tasks[import_module("dsched.model.messages").BIND]

    def bind(payload: bytes) -> None:
        task.apply(args=[payload], throw=True)

    return bind


def main() -> None:
    """Measure the checkout in this folder, which has to be the one that Python imports."""
    root = Path.cwd().resolve()
    spec = find_spec("dsched")
    if spec is None or spec.origin is None or not Path(spec.origin).resolve().is_relative_to(root):
        raise SystemExit(f"dsched is not imported from {root}: set PYTHONPATH to it")
    json.dump(measure(root), sys.stdout)


if __name__ == "__main__":
    main()
