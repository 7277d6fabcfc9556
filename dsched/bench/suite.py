"""Runs workloads one after the other, each against a clean system, and makes results of what was measured."""

import os
import platform
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

import msgspec

import dsched
from dsched.bench import depths, gates, latency, session, usage
from dsched.bench.latency import Leader
from dsched.bench.making import Maker
from dsched.bench.metering import Hooks, Stretch
from dsched.bench.operations import Operation, Unsupported
from dsched.bench.results import (
    FAILED,
    PASSED,
    UNSUPPORTED,
    Figures,
    Machine,
    Measured,
    ProcessUsage,
    RedisUsage,
    Result,
)
from dsched.bench.running import Runner
from dsched.bench.session import Running, Shape
from dsched.bench.usage import Usage
from dsched.bench.workloads import Case
from dsched.errors import DschedError

Systems = Callable[[Shape], AbstractContextManager[Running]]


@dataclass(slots=True)
class _Marks:
    """What was taken when a stretch began and when it ended; of several stretches, the first and the last."""

    before: Usage | None = None
    after: Usage | None = None
    leader_before: Leader | None = None
    leader_after: Leader | None = None


@dataclass(frozen=True, slots=True)
class Suite:
    """How workloads are run.

    Attributes:
        timeout_s: the longest wait of one operation.
        signatures: as `Maker` has it.
        least_ratio: a workload with a lower average by upstream's threshold fails.
        systems: gives a clean system.
    """

    shape: Shape
    timeout_s: float = 600.0
    least_ratio: float = 0.0
    signatures: bool = True
    systems: Systems = field(default=session.system)

    def run(
        self,
        case: Case,
        goal: Callable[[str, int], None] = lambda what, total: None,
        progress: Callable[[int], None] = lambda count: None,
    ) -> Result:
        """Run one workload; what goes wrong is in the result."""
        try:
            planned = case.operations()
            emulated = gates.emulated(case.feature_gates)
        except Unsupported as error:
            return self._without(case, UNSUPPORTED, str(error))
        except DschedError as error:
            return self._without(case, FAILED, str(error))
        goal("starting a system", 0)
        try:
            shape = replace(self.shape, config=self.shape.config or case.config, emulated=emulated.asked)
            with self.systems(shape) as system:
                result = self._measure(case, planned, system, goal, progress)
            return msgspec.structs.replace(
                result, emulated=str(emulated.features), without_effect=emulated.without_effect
            )
        except DschedError as error:
            return self._without(case, FAILED, str(error))

    def _measure(
        self,
        case: Case,
        planned: Sequence[Operation],
        system: Running,
        goal: Callable[[str, int], None],
        progress: Callable[[int], None],
    ) -> Result:
        marks = _Marks()

        def measuring() -> None:
            if marks.leader_before is None:
                marks.leader_before = latency.read_settled(system.store)
                marks.before = usage.look(system.store, system.data_dir)

        def measured() -> None:
            marks.after = usage.look(system.store, system.data_dir)

        hooks = Hooks(goal, progress, measuring, measured, system.check)
        sampler = depths.Sampler(system.store)
        sampler.start()
        began = time.monotonic()
        try:
            maker = Maker(self.shape.seed, case.declared_features, signatures=self.signatures)
            runner = Runner(case, system.store, maker, self.timeout_s, hooks)
            stretches = runner.run(planned)
            took_s = time.monotonic() - began
        finally:
            sampler.stop()
        marks.leader_after = latency.read_settled(system.store)
        return self._result(case, stretches, marks, sampler, took_s)

    def _result(
        self, case: Case, stretches: Sequence[Stretch], marks: _Marks, sampler: depths.Sampler, took_s: float
    ) -> Result:
        threshold = case.workload.threshold
        found = [_measured(each, threshold, sampler) for each in stretches]
        low = [each.ratio for each in found if each.ratio is not None and each.ratio < self.least_ratio]
        taken = marks.after.since(marks.before) if marks.after is not None and marks.before is not None else None
        pods = sum(each.pods for each in found)
        leader = Leader()
        if marks.leader_before is not None and marks.leader_after is not None:
            leader = marks.leader_after.since(marks.leader_before)
        return Result(
            name=case.name,
            status=FAILED if low or not found else PASSED,
            message=_why(low, self.least_ratio) if low else "" if found else "nothing was measured",
            labels=case.labels,
            threshold=threshold,
            file=str(case.file),
            feature_gates=case.feature_gates,
            measured=found,
            attempts=leader.attempts,
            attempt_milliseconds=leader.figures(),
            phase_seconds=leader.phase_seconds,
            processes={
                name: ProcessUsage(cpu_seconds=each.cpu_s, peak_bytes=each.peak_bytes)
                for name, each in (taken.processes if taken else {}).items()
            },
            redis=_redis(taken, pods) if taken else None,
            fullest=sampler.fullest(),
            seconds=round(took_s, 3),
        )

    def _without(self, case: Case, status: str, message: str) -> Result:
        return Result(
            name=case.name,
            status=status,
            message=message,
            labels=case.labels,
            threshold=case.workload.threshold,
            file=str(case.file),
            feature_gates=case.feature_gates,
        )


def machine(redis: str) -> Machine:
    """This machine."""
    return Machine(
        cores=os.cpu_count() or 1,
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        python=platform.python_version(),
        redis=redis,
        dsched=dsched.__version__,
        load_before=round(os.getloadavg()[0], 2),
    )


def _measured(stretch: Stretch, threshold: float, sampler: depths.Sampler) -> Measured:
    found, spread = stretch.throughput, stretch.throughput.spread
    bound, total = [], 0
    for when, count in stretch.seen:
        total += count
        bound.append((round(when - stretch.began, 3), total))
    return Measured(
        name=stretch.name,
        pods=found.pods,
        seconds=round(found.seconds, 3),
        average=round(found.average, 1),
        basis=found.basis,
        throughput=Figures(
            average=spread.average, perc50=spread.p50, perc90=spread.p90, perc95=spread.p95, perc99=spread.p99
        ),
        samples=[round(each, 1) for each in found.samples],
        whole=round(found.whole, 1),
        ratio=round(found.average / threshold, 2) if threshold else None,
        writing_seconds=round(stretch.writing_s, 3),
        bound=bound,
        depths=[
            (round(when - stretch.began, 3), places)
            for when, places in sampler.seen
            if stretch.began <= when <= stretch.ended
        ],
    )


def _redis(taken: Usage, pods: int) -> RedisUsage:
    operations, each = sum(taken.redis.commands.values()), max(1, pods)
    return RedisUsage(
        operations=operations,
        operations_per_pod=round(operations / each, 1),
        bytes_in_per_pod=round(taken.redis.bytes_in / each, 1),
        bytes_out_per_pod=round(taken.redis.bytes_out / each, 1),
        commands=dict(sorted(taken.redis.commands.items(), key=lambda item: -item[1])),
    )


def _why(low: Sequence[float], least: float) -> str:
    return f"the average is {min(low):g} times the threshold, less than {least:g} times"
