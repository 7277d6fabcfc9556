"""``dsched status``: what runs, who leads, how full the queues are."""

from pathlib import Path
from typing import Any

import msgspec
import typer

from dsched.cli import console, forms, options, watching
from dsched.cli.configured import ProcessStatus, processes, restarts, rows, troubles
from dsched.cli.render.aligned import aligned
from dsched.clock import SystemClock
from dsched.cluster.opening import Kind
from dsched.errors import RedisUnavailable
from dsched.model import raw
from dsched.observe.words import duration, paused_lines
from dsched.state import (
    address,
    beyond,
    client,
    keys,
    leader_config,
    leaders,
    lease,
    pauses,
    phases,
    redis_check,
    standings,
    versions,
    workers,
)
from dsched.state.beyond import BeyondSum
from dsched.supervisor import lock, record

ZSETS = (keys.ACTIVE, keys.BACKOFF, keys.UNSCHEDULABLE, keys.GATED, keys.WAITING)
HASHES = (keys.INFLIGHT.name, keys.RESERVATIONS.name, "cluster:nodes", "cluster:pods")


class ChildStatus(msgspec.Struct, frozen=True):
    """A child of the supervisor; ``uptime_s`` None while it does not run."""

    name: str
    state: str
    pid: int
    uptime_s: float | None
    restarts: int


class WorkerStatus(msgspec.Struct, frozen=True):
    """A worker that has written to Redis.

    Attributes:
        seen_ms: when it last ran a task, in ms since the epoch.
        behind: by how many versions its replica of the node table is behind; None where it has none.
    """

    name: str
    kind: str
    seen_ms: int
    behind: int | None


class Emulated(msgspec.Struct, frozen=True):
    """A version of kube-scheduler, ``1.37``, and its feature gates that were set, ``A=true,B=false``."""

    version: str
    feature_gates: str


class State(msgspec.Struct, frozen=True):
    """What Redis says.

    Attributes:
        leader: identity of the leader, None where nobody leads.
        epoch: of the newest leader there ever was, 0 before the first.
        queues: pods in each queue, ``inflight`` among them.
        reservations: pods that have a node and are not yet bound.
        nodes, pods: objects in the cluster, where it is kept in Redis.
        cluster: what keeps them: ``standalone`` (Redis) or ``kubernetes``; ``""`` before the first leader.
        workers: every worker that has written to Redis, also those that are gone.
        leader_seconds: the leader's time by what it did, since its process began; empty before the first leader.
        redis_warnings: what is wrong with the Redis server, or may lose state.
        config: hash of the leader's configuration, None where nobody leads.
        processes: leaders, standbys and workers heard of lately, with their configurations.
        emulated: the version of kube-scheduler that the leader emulates, and its feature gates that were set; None
            before the first leader, and where an older one does not say.
        beyond: nodes whose pods request more of a resource than 64 bits hold, which count as full; at most 20 of them.
    """

    version: str
    leader: str | None
    epoch: int
    queues: dict[str, int]
    reservations: int
    nodes: int
    pods: int
    workers: list[WorkerStatus]
    leader_seconds: dict[str, float] = {}
    redis_warnings: list[str] = []
    cluster: str = ""
    paused: list[pauses.Paused] = []
    config: str | None = None
    processes: list[ProcessStatus] = []
    beyond: list[BeyondSum] = []
    emulated: Emulated | None = None


class Status(msgspec.Struct, frozen=True):
    """A whole system.

    Attributes:
        redis: the URL with its password hidden.
        supervisor_pid: None where no supervisor runs.
        state: None where Redis does not answer.
    """

    name: str
    redis: str
    reachable: bool
    supervisor_pid: int | None
    children: list[ChildStatus]
    state: State | None

    @property
    def well(self) -> bool:
        """Whether it can schedule: Redis answers and a leader leads."""
        return self.state is not None and self.state.leader is not None


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command(epilog="Example: dsched status -o json | jq .state.queues")(status)


def status(
    data_dir: options.DataDir = None,
    redis_url: options.RedisUrl = None,
    name: options.Name = None,
    output: forms.Printed = forms.Answer.TEXT,
    watch: watching.Watch = False,
) -> None:
    """Tell what runs, who leads and how full the queues are; exit code 1 when it does not run or nobody leads."""
    folder = (data_dir or address.default_data_dir()).absolute()
    found = address.find(redis_url, folder, name)
    if watch and output is forms.Answer.JSON:
        watching.repeat_json(lambda: msgspec.json.encode(_look(found, folder)))
    elif watch:
        watching.repeat_text(lambda: "\n".join(_lines(_look(found, folder))))
    else:
        answer = _look(found, folder)
        if output is forms.Answer.JSON:
            console.write(forms.as_json(answer))
        else:
            for line in _lines(answer):
                console.out.print(line, markup=False)
        if not answer.well:
            raise typer.Exit(1)


def _look(found: address.Address, folder: Path) -> Status:
    local = address.read(folder)
    is_local = local is not None and local.redis_url == found.redis_url
    holder = lock.holder(folder) if is_local else None
    return Status(
        name=found.name,
        redis=client.shown(found.redis_url),
        reachable=(state := _ask(found)) is not None,
        supervisor_pid=holder.pid if holder is not None and holder.alive else None,
        children=_children(record.read(folder)) if is_local else [],
        state=state,
    )


def read(store: client.Store) -> State:
    """Ask Redis.

    Raises:
        RedisUnavailable: it does not answer.
    """
    with client.reachable(store):
        pipe: Any = store.redis.pipeline(transaction=False)
        pipe.get(store.key(keys.LEADER.name))
        pipe.get(store.key(keys.EPOCH.name))
        for queue in ZSETS:
            pipe.zcard(store.key(queue.name))
        for name in HASHES:
            pipe.hlen(store.key(name))
        leader, epoch, *counts = pipe.execute()
        seen = workers.read(store)
        newest = versions.newest(store)
        led = leaders.read(store)
        spent = phases.read(store).seconds
        kept_by = standings.cluster(store)
        told = leader_config.read(store)
    fit = redis_check.look(store, keeps_objects=kept_by in ("", Kind.STANDALONE.value))
    *queues, inflight, reservations, nodes, pods = counts
    names = [queue.name.removeprefix("queue:") for queue in ZSETS]
    identity = holder[0] if (holder := lease.parse(leader)) else None
    return State(
        version=fit.version,
        leader=identity,
        epoch=raw.whole(epoch),
        queues={**dict(zip(names, queues, strict=True)), "inflight": inflight},
        reservations=reservations,
        nodes=nodes,
        pods=pods,
        workers=[WorkerStatus(each.name, each.kind, each.last_seen_ms, each.behind(newest)) for each in seen],
        leader_seconds=dict(spent),
        redis_warnings=[*fit.quarantine, *fit.warnings],
        cluster=kept_by,
        paused=pauses.read(store),
        config=next((each.config for each in led if each.identity == identity), None),
        processes=processes(led, seen, identity, SystemClock().now_ms()),
        beyond=beyond.read(store),
        emulated=Emulated(told.version, told.gates) if told is not None and told.version else None,
    )


def _ask(found: address.Address) -> State | None:
    store = client.connect(found.redis_url, found.name)
    try:
        return read(store)
    except RedisUnavailable:
        return None
    finally:
        store.close()


def _children(records: list[record.ChildRecord]) -> list[ChildStatus]:
    now_ms = SystemClock().now_ms()
    return [
        ChildStatus(
            child.name,
            child.state,
            child.pid,
            (now_ms - child.started_at) / 1000 if child.pid else None,
            child.restarts,
        )
        for child in records
    ]


def _lines(answer: Status) -> list[str]:
    lines = aligned(_facts(answer))
    if answer.children:
        lines += ["", *aligned([("CHILD", "STATE", "PID", "UPTIME", "RESTARTS"), *map(_row, answer.children)])]
    if answer.state is not None and answer.state.processes:
        lines += ["", *aligned(list(rows(answer.state.processes, SystemClock().now_ms())))]
    return lines


def _row(child: ChildStatus) -> tuple[str, ...]:
    uptime = "-" if child.uptime_s is None else duration(child.uptime_s)
    return child.name, child.state, str(child.pid or "-"), uptime, str(child.restarts)


def _facts(answer: Status) -> list[tuple[str, str]]:
    supervisor = "none" if answer.supervisor_pid is None else f"pid {answer.supervisor_pid}"
    state = answer.state
    if state is None:
        redis = f"{answer.redis}, does not answer"
        return [("system", answer.name), ("redis", redis), ("supervisor", supervisor)]
    return [
        ("system", answer.name),
        ("redis", f"{answer.redis}, version {state.version}"),
        *(("warning", f"Redis {warning}") for warning in state.redis_warnings),
        ("supervisor", supervisor),
        *(("warning", line) for line in troubles(state.processes)),
        *(("note", line) for line in restarts(state.processes)),
        *(("warning", _overflow(each)) for each in state.beyond),
        ("leader", f"{state.leader or 'nobody leads'}, epoch {state.epoch}"),
        *([] if state.emulated is None else [("emulates", _emulated(state.emulated))]),
        *(("paused", line) for line in paused_lines(state.paused, SystemClock().now_ms())),
        ("queues", ", ".join(f"{queue} {count}" for queue, count in state.queues.items())),
        ("reservations", str(state.reservations)),
        ("cluster", _cluster(state)),
        ("workers", _seen(state.workers)),
    ]


def _emulated(each: Emulated) -> str:
    return f"kube-scheduler {each.version}" + (each.feature_gates and f", {each.feature_gates}")


def _overflow(each: BeyondSum) -> str:
    unit = "m" if each.resource == "cpu" else ""
    return (
        f"node {each.node} counts as full: its pods request {each.requested}{unit} of {each.resource}, "
        "more than 64 bits hold; dsched fsck names them"
    )


def _cluster(state: State) -> str:
    if state.cluster == Kind.KUBERNETES.value:
        return "kubernetes, see kubectl get nodes,pods"
    return f"{state.nodes} nodes, {state.pods} pods"


def _seen(seen: list[WorkerStatus]) -> str:
    now_ms = SystemClock().now_ms()
    lately = [worker for worker in seen if now_ms - worker.seen_ms <= workers.FORGOTTEN_AFTER_MS]
    return ", ".join(_told(worker, now_ms) for worker in lately) or "none"


def _told(worker: WorkerStatus, now_ms: int) -> str:
    behind = f", {worker.behind} versions behind" if worker.behind else ""
    return f"{worker.name} {duration((now_ms - worker.seen_ms) / 1000)} ago{behind}"
