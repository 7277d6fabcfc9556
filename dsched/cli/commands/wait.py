"""``dsched wait``: until pods are scheduled, or until the scheduler has nothing more to do about them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

import msgspec
import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from dsched.cli import choosing, console, forms, options
from dsched.clock import Clock, SystemClock
from dsched.cluster.interface import Change, Event
from dsched.cluster.standalone import keys as cluster_keys
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.errors import WatchExpired
from dsched.manifests import kinds, selector
from dsched.manifests.defaulting import DEFAULT_NAMESPACE
from dsched.model import raw
from dsched.model.pod import Pod
from dsched.observe.words import paused_lines
from dsched.scheduler.ports import QueueName
from dsched.state import client, keys, pauses
from dsched.state.client import Store

POLL_S = 0.25
REST_S = 0.1
"""Pause after each look, so that a busy cluster is not watched change by change."""
_NAMED = 3
_ASKED_AT_ONCE = 1000


class Goal(StrEnum):
    """What to wait for."""

    SCHEDULED = "scheduled"
    SETTLED = "settled"


@dataclass(frozen=True, slots=True)
class Wish:
    """Which pods; ``namespace`` None for every one."""

    namespace: str | None
    matching: selector.Selector

    @property
    def everything(self) -> bool:
        return self.namespace is None and not self.matching.requirements

    def takes(self, pod: Pod) -> bool:
        place = self.namespace is None or pod.metadata.namespace == self.namespace
        return place and self.matching.matches(pod.metadata.labels)


@dataclass(slots=True)
class Tally:
    """The pods waited for.

    Attributes:
        done: bound or finished.
        open: neither; the name of each pod's scheduler.
    """

    wish: Wish
    done: set[str] = field(default_factory=set)
    open: dict[str, str] = field(default_factory=dict)

    def put(self, pod: Pod) -> None:
        """Take in a pod as it is now."""
        self.drop(pod.key)
        if not self.wish.takes(pod):
            return
        if pod.node_name or pod.finished:
            self.done.add(pod.key)
        elif not pod.deleting:
            self.open[pod.key] = pod.spec.scheduler_name

    def drop(self, key: str) -> None:
        """Forget a pod."""
        self.done.discard(key)
        self.open.pop(key, None)

    def take(self, event: Event) -> None:
        """Take in a change."""
        if event.kind != kinds.POD.name:
            return
        if isinstance(event.object, Pod):
            self.put(event.object)
        elif event.change is Change.DELETED:
            self.drop(event.key)
        elif event.change is Change.BOUND and self.open.pop(event.key, None) is not None:
            self.done.add(event.key)


@dataclass(frozen=True, slots=True)
class Queues:
    """How full the scheduler's queues are, and how far it has taken the cluster in (-1: not at all).

    Attributes:
        grouped: pods beside their pod groups, which stand in one of the queues for them.
        held_back: of what is active, what limits of queues hold back.
        settled: whether the leader, and not only one before it, has said that nothing else is left to try, be it
            because of what it has taken in, be it because of what pods have given back.
        schedulers: the names that pods of this system ask for; None where the leader has not said.
        cluster_version: of the cluster at the same moment.
    """

    active: int
    backoff: int
    in_flight: int
    reserved: int
    unschedulable: int
    gated: int
    grouped: int
    held_back: int
    intake: int
    settled: bool
    schedulers: frozenset[str] | None
    cluster_version: int

    @property
    def at_rest(self) -> bool:
        """Nothing left to try, of all that there is."""
        moving = self.active - self.held_back + self.backoff + self.in_flight + self.reserved
        return moving == 0 and self.settled and self.intake >= self.cluster_version

    def is_ours(self, scheduler: str) -> bool:
        return self.schedulers is None or scheduler in self.schedulers


class Answer(msgspec.Struct, frozen=True):
    """What came of a wait.

    Attributes:
        done: how many of the pods are bound or have finished.
        open: the others.
    """

    goal: Goal
    reached: bool
    done: int
    open: list[str]
    queues: Queues


def register(app: typer.Typer) -> None:
    """Add this module's commands."""
    app.command("wait", epilog="Example: dsched apply -f shop/ && dsched wait --for settled --timeout 60")(wait)


def wait(
    goal: Annotated[Goal, typer.Option("--for", help="What to wait for.")] = Goal.SCHEDULED,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait.")] = 300.0,
    namespace: choosing.Namespace = None,
    all_namespaces: choosing.AllNamespaces = False,
    labels: choosing.Labels = "",
    output: Annotated[
        forms.Answer, typer.Option("--output", "-o", help="How to print what came of it.")
    ] = forms.Answer.TEXT,
    redis_url: options.RedisUrl = None,
    data_dir: options.DataDir = None,
    name: options.Name = None,
) -> None:
    """Wait for pods: exit code 0 when it is so, 1 when the time is up first.

    scheduled: every pod is bound or has finished. settled: every pod is bound, has finished, is gated, is held
    back by a limit of its queue, or has been declared unschedulable, and the scheduler has nothing left to try. Pods of
    other schedulers are not waited for when settling.
    """
    store = options.open_objects(redis_url, data_dir, name, "kubectl wait")
    place = None if all_namespaces else namespace or DEFAULT_NAMESPACE
    waiting = Waiting(store, Wish(place, selector.parse(labels)), SystemClock())
    with _progress(waiting) as show:
        reached = waiting.run(goal, timeout, show)
    if output is forms.Answer.JSON:
        answer = Answer(goal, reached, len(waiting.tally.done), sorted(waiting.tally.open), waiting.queues)
        console.write(forms.as_json(answer))
    if not reached:
        console.err.print(f"not {goal} after {timeout:g}s: {waiting.left()}", style="red", markup=False)
        for line in paused_lines(pauses.read(store), SystemClock().now_ms()):
            console.err.print(f"paused: {line}; go on with 'dsched resume'", markup=False)
        raise typer.Exit(1)
    if output is forms.Answer.TEXT:
        console.out.out(f"{goal}: {waiting.counts()}")


class Waiting:
    """One wait: follows the cluster's log, so that a look costs what has changed and a few set sizes."""

    def __init__(self, store: Store, wish: Wish, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._cluster = StandaloneCluster(store, clock)
        self._wish = wish
        self._version = 0
        self.tally = Tally(wish)
        self.queues = self._look()

    def run(self, goal: Goal, timeout_s: float, show: Callable[[], None] = lambda: None) -> bool:
        """Wait; says whether the goal was reached. ``show`` is called after each look."""
        deadline = self._clock.monotonic() + timeout_s
        self._list()
        while True:
            self.queues = self._look()
            if self.queues.cluster_version == self._version:
                show()
                if self._reached(goal):
                    return True
            left = deadline - self._clock.monotonic()
            if left <= 0:
                return False
            self._clock.sleep(min(REST_S, left))
            self._follow(max(0.0, min(POLL_S, left - REST_S)))

    def counts(self) -> str:
        """How the pods stand, in words."""
        done, still = len(self.tally.done), len(self.tally.open)
        return f"{done + still} pods, {done} bound or finished, {still} not bound"

    def left(self) -> str:
        """What is still open, in words."""
        queues = self.queues
        named = ", ".join(sorted(self.tally.open)[:_NAMED])
        which = f" ({named}{', …' if len(self.tally.open) > _NAMED else ''})" if named else ""
        places = (
            f"queues: {queues.active} active, {queues.backoff} backing off, {queues.in_flight} in flight, "
            f"{queues.reserved} reserved, {queues.unschedulable} unschedulable, {queues.gated} gated"
            f"{f', {queues.held_back} of the active held back by limits' if queues.held_back else ''}"
        )
        behind = ""
        if queues.intake < queues.cluster_version:
            seen = "nothing" if queues.intake < 0 else f"version {queues.intake}"
            behind = f"; the leader has taken in {seen} of version {queues.cluster_version} (is one running?)"
        elif not queues.settled:
            behind = "; the leader has not said that nothing is left to try"
        return f"{self.counts()}{which}; {places}{behind}"

    def _reached(self, goal: Goal) -> bool:
        if not self.tally.open:
            return goal is Goal.SCHEDULED or self.queues.at_rest
        return goal is Goal.SETTLED and self.queues.at_rest and self._all_set_aside()

    def _all_set_aside(self) -> bool:
        """Whether every open pod of ours stands where nothing is tried, or beside a pod group that does."""
        ours = [key for key, scheduler in self.tally.open.items() if self.queues.is_ours(scheduler)]
        queues = self.queues
        if queues.grouped:
            with client.reachable(self._store):
                members = self._store.redis.zrange(self._store.key(keys.GROUP.name), 0, -1)
            beside = {raw.text(member).partition(" ")[2] for member in members}
            ours = [key for key in ours if key not in beside]
        elif self._wish.everything:
            return len(ours) == queues.unschedulable + queues.gated + queues.held_back
        for start in range(0, len(ours), _ASKED_AT_ONCE):
            batch = ours[start : start + _ASKED_AT_ONCE]
            with client.reachable(self._store):
                pipe: Any = self._store.redis.pipeline(transaction=True)
                for key in (keys.UNSCHEDULABLE, keys.GATED):
                    pipe.zmscore(self._store.key(key.name), batch)
                for pod in batch if queues.held_back else ():  # who is active has no entry under its own name
                    pipe.hget(self._store.key(keys.POD.name + pod), "queue")
                unschedulable, gated, *places = pipe.execute()
            stand = [[score is not None for score in scores] for scores in (unschedulable, gated)]
            if queues.held_back:
                stand.append([raw.text(place or b"") == QueueName.ACTIVE for place in places])
            if not all(map(any, zip(*stand, strict=True))):
                return False
        return True

    def _list(self) -> None:
        listing = self._cluster.list()
        self._version = listing.version
        self.tally = Tally(self._wish)
        for pod in listing.pods:
            self.tally.put(pod)
        self._follow(0.0)

    def _follow(self, wait_s: float) -> None:
        """Take in what has changed; waits for the first change only."""
        try:
            while True:
                events, self._version = self._cluster.watch(self._version, wait_s)
                for event in events:
                    self.tally.take(event)
                if not events:
                    return
                wait_s = 0.0
        except WatchExpired:
            self._list()

    def _look(self) -> Queues:
        with client.reachable(self._store):
            pipe: Any = self._store.redis.pipeline(transaction=True)
            for key in (keys.ACTIVE, keys.BACKOFF, keys.UNSCHEDULABLE, keys.GATED, keys.GROUP):
                pipe.zcard(self._store.key(key.name))
            pipe.hlen(self._store.key(keys.INFLIGHT.name))
            pipe.hlen(self._store.key(keys.RESERVATIONS.name))
            pipe.hgetall(self._store.key(keys.INTAKE.name))
            pipe.get(self._store.key(keys.EPOCH.name))
            pipe.get(self._store.key(cluster_keys.VERSION.name))
            active, backoff, unschedulable, gated, grouped, in_flight, reserved, intake, epoch, version = pipe.execute()
        return Queues(
            active=active,
            backoff=backoff,
            in_flight=in_flight,
            reserved=reserved,
            unschedulable=unschedulable,
            gated=gated,
            grouped=grouped,
            held_back=int(intake.get(b"held_back", 0)),
            intake=int(intake.get(b"version", -1)),
            settled=intake.get(b"settled", b"") == epoch,
            schedulers=_names(intake),
            cluster_version=int(version or 0),
        )


def _names(intake: Mapping[bytes, bytes]) -> frozenset[str] | None:
    text = intake.get(b"schedulers")
    return None if text is None else frozenset(text.decode().split())


@contextmanager
def _progress(waiting: Waiting) -> Iterator[Callable[[], None]]:
    """A bar on the terminal: pods bound, unschedulable, waiting."""
    if not console.err.is_terminal:
        yield lambda: None
        return
    with Progress(BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console.err) as progress:
        task = progress.add_task("waiting")

        def show() -> None:
            done, still = len(waiting.tally.done), len(waiting.tally.open)
            stuck = min(still, waiting.queues.unschedulable)
            told = f"{done} bound, {stuck} unschedulable, {still - stuck} waiting"
            progress.update(task, completed=done, total=done + still, description=told)

        yield show
