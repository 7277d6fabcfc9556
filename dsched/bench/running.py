"""One workload: its operations carried out in order against a system, and what was measured meanwhile.

Source: kubernetes v1.37 test/integration/scheduler_perf/executor.go ``WorkloadExecutor``.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random

from dsched.bench import depths
from dsched.bench.following import Follower
from dsched.bench.gates import emulated
from dsched.bench.making import Maker, with_claim
from dsched.bench.metering import Hooks, Meter, Stretch
from dsched.bench.operations import (
    AllocResourceClaims,
    Barrier,
    Churn,
    CreateAny,
    CreateNamespaces,
    CreateNodes,
    CreatePods,
    DeletePods,
    Operation,
    Sleep,
    StartCollectingMetrics,
    StopCollectingMetrics,
    UpdateAny,
    duration_s,
)
from dsched.bench.templates import Template
from dsched.bench.workloads import Case
from dsched.bench.writing import Writer, allocated
from dsched.errors import ConfigError, DschedError
from dsched.manifests.load import Manifest
from dsched.state.client import Store

LOOK_S = 0.5


class WorkloadFailed(DschedError):
    """A workload did not come to its end."""


class Runner:
    """Carries out one workload.

    Args:
        maker: of its objects.
        timeout_s: the longest that one operation may wait.
    """

    def __init__(self, case: Case, store: Store, maker: Maker, timeout_s: float, hooks: Hooks) -> None:
        self._case = case
        self._store = store
        self._timeout_s = timeout_s
        self._hooks = hooks
        self._follower = Follower(store)
        self._maker = maker
        self._writer = Writer(store, self._follower)
        self._background = Background()
        self._waited_for: dict[str, int] = {}
        self._meter = Meter(self._follower, hooks)

    def run(self, planned: Sequence[Operation]) -> list[Stretch]:
        """Do it all; what was measured.

        Raises:
            WorkloadFailed: pods were not bound in time, or a thread in the background failed.
            ConfigError: a template cannot be used.
        """
        self._follower.start()
        try:
            for number, operation in enumerate(planned):
                self._carry_out(number, operation)
        finally:
            self._background.stop()
            self._follower.stop()
        self._background.check()
        return self._meter.stretches

    def _carry_out(self, number: int, operation: Operation) -> None:
        match operation:
            case CreateNodes():
                self._create_nodes(number, operation)
            case CreateNamespaces():
                self._create_namespaces(operation)
            case CreatePods():
                self._create_pods(number, operation)
            case DeletePods():
                self._delete_pods(number, operation)
            case Churn():
                self._churn(number, operation)
            case Barrier():
                self._barrier(number, operation)
            case Sleep():
                time.sleep(duration_s(operation))
            case UpdateAny():
                self._update_any(operation)
            case CreateAny():
                self._create_any(operation)
            case AllocResourceClaims():
                self._allocate(operation)
            case StartCollectingMetrics():
                self._meter.begin(operation.name, operation.namespaces, operation.label_selector)
            case StopCollectingMetrics():
                self._meter.end()
            case _:
                raise ConfigError(f"operation {number}: {operation.opcode} cannot be carried out")

    # -- operations ------------------------------------------------------------------------------------------------

    def _create_nodes(self, number: int, operation: CreateNodes) -> None:
        template = self._template(operation.node_template_path, operation.template_params)
        self._writer.create(self._maker.nodes(number, operation, template))

    def _create_namespaces(self, operation: CreateNamespaces) -> None:
        names = [f"{operation.prefix}-{index}" for index in range(operation.count)]
        self._writer.apply(self._maker.namespaces(names, self._template(operation.namespace_template_path)))

    def _create_pods(self, number: int, operation: CreatePods) -> None:
        namespace = operation.namespace or f"namespace-{number}"
        self._namespace(namespace)
        path = operation.pod_template_path or self._case.pod_template
        template, batch = self._template(path, operation.template_params), max(1, operation.signature_batch_size)
        if operation.steady_state:
            self._keep_creating(number, operation, namespace, template)
            return
        pods = list(self._maker.pods(template, namespace, operation.count, batch))
        volume = self._template(operation.persistent_volume_template_path)
        claim = self._template(operation.persistent_volume_claim_template_path)
        volumes = self._maker.volumes(namespace, operation.count, volume, claim) if volume and claim else []
        if volumes:
            pods = [with_claim(pod, index) for index, pod in enumerate(pods)]
        prepared = self._writer.prepare([*volumes, *pods])
        if operation.collect_metrics:
            self._meter.begin("", [namespace], {})
        with self._meter.writing():
            self._writer.write(prepared)
        if operation.skip_wait_to_completion:
            self._waited_for[namespace] = self._waited_for.get(namespace, 0) + operation.count
            return
        self._wait(number, "bound", operation.count, partial(self._follower.bound, namespace, {}))
        if operation.collect_metrics:
            self._meter.end()

    def _keep_creating(self, number: int, operation: CreatePods, namespace: str, template: Template | None) -> None:
        """Delete each pod as soon as it is seen bound, and create another one: the queue is never empty, and the
        cluster stays as it was.

        Source: test/integration/scheduler_perf/executor.go ``createPodsSteadily``.
        """
        if operation.collect_metrics:
            self._meter.begin("", [namespace], {})
        self._writer.create(list(self._maker.pods(template, namespace, operation.count)))
        until, replaced = time.monotonic() + duration_s(operation), set[str]()

        def bound() -> list[str]:
            return [key for key in self._follower.bound_keys(namespace) if key not in replaced]

        self._hooks.goal("bound", 0)
        with self._follower.closely():
            while (left_s := until - time.monotonic()) > 0:
                self._follower.wait(lambda: bool(bound()), min(LOOK_S, left_s))
                self._hooks.check()
                self._background.check()
                keys = bound()
                self._writer.delete_pods(keys)
                self._writer.create(list(self._maker.pods(template, namespace, len(keys))))
                replaced.update(keys)
                self._hooks.progress(len(replaced))
        if not replaced:
            raise WorkloadFailed(f"operation {number}: no pod was bound in {operation.duration}")
        if operation.collect_metrics:
            self._meter.end()

    def _allocate(self, operation: AllocResourceClaims) -> None:
        features = emulated(self._case.feature_gates).features
        self._writer.apply(allocated(self._store, operation.namespace, features, Random(self._case.name)))

    def _delete_pods(self, number: int, operation: DeletePods) -> None:
        keys = self._follower.keys(operation.namespace, operation.label_selector)
        if operation.delete_pods_per_second <= 0:
            self._writer.delete_pods(keys)
            return

        def delete(pace: Pace) -> None:
            for key in keys:
                if not pace.next():
                    return
                self._writer.delete_pods([key])

        interval_s = 1 / operation.delete_pods_per_second
        if operation.skip_wait_to_completion:
            self._background.start(f"deletePods-{number}", delete, interval_s)
        else:
            delete(self._background.pace(interval_s))

    def _churn(self, number: int, operation: Churn) -> None:
        namespace = operation.namespace or f"namespace-{number}"
        self._writer.apply(self._maker.namespaces([namespace]))
        templates = [Template(self._case.path(path)) for path in operation.template_paths]
        make = partial(self._maker.any, index=0, count=1, namespace=namespace)

        def create(pace: Pace) -> None:
            cycles = 0
            while (not operation.number or cycles < operation.number) and pace.next():
                self._writer.create([make(template) for template in templates])
                cycles += 1

        def recreate(pace: Pace) -> None:
            cycles = 0
            living: list[list[Manifest]] = [[] for _ in range(operation.number)]
            while pace.next():
                turn = cycles % operation.number
                if living[turn]:
                    self._writer.delete(living[turn])
                    living[turn] = []
                else:
                    living[turn] = [make(template) for template in templates]
                    self._writer.create(living[turn])
                cycles += 1

        job = create if operation.mode == "create" else recreate
        self._background.start(f"churn-{number}", job, operation.interval_milliseconds / 1000)

    def _barrier(self, number: int, operation: Barrier) -> None:
        names = list(operation.namespaces) or list(self._waited_for)
        unknown = [name for name in names if name not in self._waited_for]
        if unknown:
            raise ConfigError(f"operation {number}: barrier for unknown namespaces {', '.join(unknown)}")
        tried = operation.stage_requirement == "Attempted"
        count = self._follower.tried if tried else self._follower.bound
        for name in names:
            has = partial(count, name, operation.label_selector)
            self._wait(number, "tried" if tried else "bound", self._waited_for[name], has)
            if not tried:
                del self._waited_for[name]
        if tried:
            # The API server marks gated pods; that the scheduler knows them shows in its queue.
            self._wait(number, "gated", self._follower.gated(), lambda: depths.look(self._store)["gated"])

    def _create_any(self, operation: CreateAny) -> None:
        if operation.namespace:
            self._namespace(operation.namespace)
        template = Template(self._case.path(operation.template_path), operation.template_params)
        made = [
            self._maker.any(template, index, operation.count, operation.namespace or None)
            for index in range(operation.count)
        ]
        self._writer.create(made)

    def _update_any(self, operation: UpdateAny) -> None:
        template = Template(self._case.path(operation.template_path), operation.template_params)
        pace = self._background.pace(1 / operation.update_per_second) if operation.update_per_second else None
        for index in range(operation.count):
            if pace is not None:
                pace.next()
            self._writer.apply([self._maker.any(template, index, operation.count, operation.namespace or None)])

    # -- waiting ---------------------------------------------------------------------------------------------------

    def _wait(self, number: int, what: str, wanted: int, has: Callable[[], int]) -> None:
        """Wait until there are so many."""
        self._hooks.goal(what, wanted)
        deadline = time.monotonic() + self._timeout_s
        while not self._follower.wait(lambda: has() >= wanted, LOOK_S):
            self._hooks.progress(has())
            self._hooks.check()
            self._background.check()
            if time.monotonic() >= deadline:
                queues = ", ".join(f"{place} {count}" for place, count in depths.look(self._store).items())
                raise WorkloadFailed(
                    f"operation {number}: only {has()} of {wanted} pods are {what} after {self._timeout_s:g} s; "
                    f"in the queue: {queues}"
                )
        self._hooks.progress(wanted)

    def _template(self, path: str | None, params: Mapping[str, object] | None = None) -> Template | None:
        return Template(self._case.path(path), params) if path else None

    def _namespace(self, name: str) -> None:
        """Make a namespace unless it is there; namespaces of pods are known to barriers."""
        if name not in self._waited_for:
            self._writer.apply_missing(self._maker.namespaces([name]))
            self._waited_for[name] = 0


class Pace:
    """Steady steps. A step that is late does not make the next ones come faster, as with Go's ticker."""

    def __init__(self, interval_s: float, over: threading.Event) -> None:
        self._interval_s = interval_s
        self._over = over
        self._next = time.monotonic() + interval_s

    def next(self) -> bool:
        """Wait for the next step; False when there is none because the workload has ended."""
        if self._over.wait(max(0.0, self._next - time.monotonic())):
            return False
        self._next = max(self._next + self._interval_s, time.monotonic())
        return True


class Background:
    """The threads of one workload."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._failed: list[str] = []

    def pace(self, interval_s: float) -> Pace:
        """Steps for the foreground."""
        return Pace(interval_s, self._over)

    def start(self, name: str, job: Callable[[Pace], None], interval_s: float) -> None:
        """Run a job until it returns or the workload ends."""

        def run() -> None:
            try:
                job(Pace(interval_s, self._over))
            except DschedError as error:
                self._failed.append(f"{name}: {error}")

        thread = threading.Thread(target=run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def stop(self) -> None:
        """End all of them."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def check(self) -> None:
        """
        Raises:
            DschedError: a job has failed.
        """
        if self._failed:
            raise DschedError("; ".join(self._failed))
