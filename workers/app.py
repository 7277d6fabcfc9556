"""What evaluators and binders share: the Celery app, the process's view of its system, and the sign of life."""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Literal

import msgspec
from celery import Celery
from celery.apps import worker as celery_worker
from celery.signals import (
    celeryd_after_setup,
    celeryd_init,
    setup_logging,
    worker_process_init,
    worker_shutdown,
)
from kombu.entity import Queue

from dsched import garbage, log, tracing
from dsched.clock import SystemClock
from dsched.cluster import opening
from dsched.cluster.interface import Cluster
from dsched.config import SchedulerConfiguration
from dsched.errors import ClusterUnavailable, DschedError, RedisUnavailable
from dsched.framework import plugin_timeout
from dsched.framework.runtime import Framework
from dsched.framework.snapshot import Snapshot
from dsched.metrics import LAST_TASK, MESSAGES_REFUSED, TASK_DURATION, TASKS, collect
from dsched.model.messages import PING
from dsched.observe.address import address as address_of_metrics
from dsched.observe.server import Server
from dsched.plugins import profiles
from dsched.state import address, workers
from dsched.state import time as redis_time
from dsched.state.broker import celery_settings
from dsched.state.client import UNAVAILABLE, Store, WrongType, connect
from dsched.state.workers import Worker
from dsched.state.workers_clock import WorkersClock
from workers.channel import GuardedAmqp
from workers.consumer import pool_forked
from workers.health import Health, worker_server
from workers.leader_config import LeaderConfigFollower
from workers.pool_monitor import PoolMonitor
from workers.registration import WorkerRegistration
from workers.replica_lag import ReplicaLag
from workers.running_plugins import RunningPlugins
from workers.tracing import WorkerTraces

_log = log.logger(__name__)


class System:
    """The system that this process works for, found by its environment; connected on first use, after any fork.

    Attributes:
        following: which configuration this process has, and whether it is the leader's.
    """

    def __init__(self) -> None:
        found = address.find(os.environ.get("DSCHED_REDIS_URL"), None, os.environ.get("DSCHED_NAME"))
        self.redis_url = found.redis_url
        self.name = found.name
        self.following = LeaderConfigFollower(lambda: self.store)

    @cached_property
    def store(self) -> Store:
        """The system's state."""
        return connect(self.redis_url, self.name)

    @cached_property
    def cluster(self) -> Cluster:
        """The source of truth."""
        return opening.open_cluster(opening.from_environment(), self.store, self.config)

    @cached_property
    def clock(self) -> WorkersClock:
        """What deadlines of messages are compared with."""
        return WorkersClock(self.store, SystemClock())

    @property
    def config(self) -> SchedulerConfiguration:
        """The leader's configuration once it was taken up; before, what ``DSCHED_CONFIG`` names, else the default."""
        return self.following.config

    def frameworks(self, config: SchedulerConfiguration, handle: Any) -> dict[str, Framework]:
        """The frameworks of a configuration's profiles, for a handle."""
        return profiles.frameworks(config, self.following.plugins, handle)


class Late(Exception):
    """Nobody waits any more for what a message asks for."""


class WorkerHandle:
    """Given to every plugin that a worker builds.

    Attributes:
        snapshot: an evaluator's replica; empty in a binder.
        cluster: the source of truth, for plugins of the binding cycle.
        clock: the time; plugins take it from here.
    """

    def __init__(self, snapshot: Snapshot, cluster: Cluster) -> None:
        self.snapshot = snapshot
        self.cluster = cluster
        self.clock = SystemClock()


class WorkerApp:
    """One kind of worker: its Celery app, and how it shows that it takes tasks.

    Attributes:
        table: version of an evaluator's replica of the node table, 0 while there is none.
    """

    def __init__(self, kind: Literal["evaluator", "binder"], queue: str) -> None:
        self.kind: Literal["evaluator", "binder"] = kind
        self.system = System()
        self.celery = Celery(f"dsched-{kind}", set_as_current=False, amqp=GuardedAmqp)
        self.celery.conf.update(celery_settings(self.system.redis_url, self.system.name))
        self._tasks: list[str] = []
        self.celery.conf.broker_transport_options["tasks"] = self._tasks
        self.celery.conf.task_queues = [Queue(queue)]  # type: ignore[no-untyped-call]
        self.celery.conf.task_default_queue = queue
        self.celery.conf.worker_consumer = "workers.consumer:PromptConsumer"
        self.name: str = kind
        self.table = 0
        self.traces = WorkerTraces(kind, self.system.name)
        self.limit_s = plugin_timeout.from_environment()
        soft_s, hard_s = plugin_timeout.task_limits(self.limit_s)
        self.celery.conf.update(task_soft_time_limit=soft_s, task_time_limit=hard_s)
        self.slots = RunningPlugins()
        self.replica_lag = ReplicaLag()
        self._monitor = PoolMonitor(lambda: connect(self.system.redis_url, self.system.name), self.slots)
        self._registration = WorkerRegistration(lambda: connect(self.system.redis_url, self.system.name), self._note)
        self.task(PING, self._pinged)
        setup_logging.connect(_configure_logging)
        celeryd_init.connect(self._called)
        celeryd_after_setup.connect(self._started)
        worker_shutdown.connect(self._stopped)
        self._served: Server | None = None
        self._health: Health | None = None
        pool_forked.connect(self._ready)
        worker_process_init.connect(self._forked)

    def task(self, name: str, run: Callable[[bytes], None]) -> None:
        """Run ``run(payload)`` for messages of this task name; afterwards the worker shows a sign of life.
        A message that comes late is dropped, so that a backlog is soon gone.

        A task that loses Redis or the cluster, or meets what dsched did not write there, is dropped, as if the worker
        had been killed: the leader hands the work out again. It does not fail: Celery sends a failure with its
        traceback through the pool's pipe, and when the worker connects anew while so long a message is read, half of it
        is lost and the pool is deaf for ever.
        """

        def body(task: Any, payload: bytes) -> None:
            log.about()  # what the task before was about is over
            try:
                with _counted(name), plugin_timeout.watched(self.limit_s):
                    run(payload)
                self._alive(task.request.hostname)
            except Late:
                return
            except (*UNAVAILABLE, RedisUnavailable, ClusterUnavailable, WrongType) as error:
                _log.warning("task dropped", extra={"action": "drop", "task": name, "error": str(error)})
                return
            except msgspec.MsgspecError as error:
                MESSAGES_REFUSED.inc()
                _log.error("message refused", extra={"action": "refuse", "task": name, "error": log.cut(str(error))})
                return
            LAST_TASK.set(time.time())

        self.celery.task(name=name, bind=True)(body)
        self._tasks.append(name)

    def still_wanted(self, deadline_ms: int) -> None:
        """In a task, before anything else.

        Raises:
            Late: the deadline, by Redis' clock, is over.
        """
        if self.system.clock.late(deadline_ms):
            raise Late

    def _pinged(self, payload: bytes) -> None:
        """A ping is its deadline; that of an older leader has none."""
        if payload:
            self.still_wanted(msgspec.msgpack.decode(payload, type=int))
        self.system.following.look()

    def _alive(self, hostname: str) -> None:
        self.name = hostname
        workers.note(self.system.store, self._note(self.system.store))

    def _note(self, store: Store, ago_ms: int = 0) -> Worker:
        """What stands in the list of workers, as of so long ago by Redis' clock: others compare it with theirs."""
        seen_ms = redis_time.now_ms(store) - ago_ms
        following = self.system.following
        config, cluster, trouble = following.config.hash, following.kind, following.trouble
        return Worker(self.name, self.kind, seen_ms, config, cluster, self.table, trouble)

    def _called(self, instance: Any, **_: Any) -> None:
        """Before anything else in a worker's process.

        Celery calls every worker celery@HOST unless told otherwise; leader and broker know each by its name. Its banner
        repeats what is in the log and in ``dsched status``.
        """
        log.configure()
        instance.quiet = True
        celery_worker.safe_say = _say
        name, _at, host = instance.hostname.partition("@")
        if name == "celery":
            instance.hostname = f"{self.kind}-{os.getpid()}@{host}"
        self.traces.instance = instance.hostname
        try:
            self._prepare()
        except DschedError as error:
            if log.in_json():
                _log.critical(str(error))
                raise SystemExit(1) from error
            raise SystemExit(f"error: {error}") from error  # Celery goes on after any other exception

    def _prepare(self) -> None:
        """See whether this worker can be what its environment asks for, and take the port for metrics, if there is one.

        Raises:
            DschedError: it cannot.
        """
        self.system.following.check()
        opening.load(opening.from_environment())
        tracing.check()
        where = address_of_metrics()
        if where is not None:
            store = connect(self.system.redis_url, self.system.name)
            self._served, self._health = worker_server(where, self.kind, store, self.replica_lag)

    def _started(self, sender: str, **_: Any) -> None:
        """Before the pool forks: be known to the leader, over a connection that the children do not share.

        Where Redis is away, `WorkerRegistration` sees to it once it is there. Celery listens to SIGTERM only after
        this: without a handler of ours a worker that is stopped meanwhile would stay in the list.
        """
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())
        garbage.look_seldom()
        self.name = sender
        if self._health is not None:
            self._health.name = sender
        following = self.system.following
        try:
            following.look()
            self._alive(sender)
            before = following.config.hash
            following.look()  # a leader that has published since the first look may not have known of this worker
            if following.config.hash != before:
                self._alive(sender)
        except (*UNAVAILABLE, WrongType) as error:
            _log.warning("not known to the leader yet", extra={"action": "start", "error": str(error)})
        finally:
            self.system.store.close()
            del self.system.store

    def _ready(self, sender: Any, **_: Any) -> None:
        """The pool has been forked, so threads do no harm; Redis need not be there yet."""
        self._monitor.start(sender.hostname)
        self._registration.start()
        if self._served is not None:
            self._served.start()

    def _forked(self, **_: Any) -> None:
        """In a process of the pool."""
        self.slots.take()
        self.replica_lag.take()
        if self._served is not None:
            self._served.abandon()
        # What the process that it was forked from has may be old by now.
        with contextlib.suppress(*UNAVAILABLE, WrongType):
            self.system.following.look()

    def _stopped(self, sender: Any, **_: Any) -> None:
        self._monitor.close()
        self._registration.close()
        if self._served is not None:
            self._served.close()
        # Left in the list, a worker is forgotten once it has been silent for long.
        with contextlib.suppress(*UNAVAILABLE, WrongType):
            workers.leave(self.system.store, sender.hostname)


@contextlib.contextmanager
def _counted(task: str) -> Iterator[None]:
    """Count a task, and show what it has measured; one that comes late counts as done."""
    started, result = time.perf_counter(), "failed"
    try:
        yield
        result = "done"
    except Late:
        result = "done"
        raise
    finally:
        TASKS.labels(task, result).inc()
        TASK_DURATION.labels(task).observe(time.perf_counter() - started)
        collect.flush()


def _configure_logging(**_: Any) -> None:
    log.configure()


def _say(message: str, *_: object) -> None:
    """What Celery says in signal handlers, past its log: that it stops."""
    log.say("celery.apps.worker", message)
