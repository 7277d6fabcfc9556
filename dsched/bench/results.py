"""What a run of workloads came to, as it is written with ``--json``."""

from collections.abc import Mapping, Sequence

import msgspec

PASSED, FAILED, UNSUPPORTED = "passed", "failed", "unsupported"


class Record(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """Base of the records."""


class Figures(Record, frozen=True, kw_only=True):
    """Average and percentiles; None where nothing was measured."""

    average: float | None = None
    perc50: float | None = None
    perc90: float | None = None
    perc95: float | None = None
    perc99: float | None = None


class Measured(Record, frozen=True, kw_only=True):
    """One measured stretch of a workload.

    Attributes:
        name: of the operation, where it has one.
        pods: bound while it was measured; seconds: from the first measured pod written to the last bind.
        average: pods a second, by ``basis``: the mean of ``samples``; of a run that is too short for them, those after
            the first binds by the time from then to the last bind, or ``whole`` where the first were most.
        throughput: of the one-second samples.
        whole: pods by seconds.
        ratio: average by the threshold in the file; None where there is none.
        writing_seconds: how long writing the measured pods took.
        bound: [seconds since counting began, pods bound by then].
        depths: [seconds since counting began, pods by place of the queue].
    """

    name: str
    pods: int
    seconds: float
    average: float
    basis: str
    throughput: Figures
    samples: Sequence[float]
    whole: float
    ratio: float | None
    writing_seconds: float
    bound: Sequence[tuple[float, int]] = ()
    depths: Sequence[tuple[float, Mapping[str, int]]] = ()


class ProcessUsage(Record, frozen=True, kw_only=True):
    """CPU seconds while it was measured, and the most memory ever held, of a process and what it forked."""

    cpu_seconds: float
    peak_bytes: int


class RedisUsage(Record, frozen=True, kw_only=True):
    """What Redis did while it was measured; commands that scripts call are among the operations."""

    operations: int
    operations_per_pod: float
    bytes_in_per_pod: float
    bytes_out_per_pod: float
    commands: Mapping[str, int]


class Result(Record, frozen=True, kw_only=True):
    """One workload.

    Attributes:
        message: why it did not pass.
        file: that the workload and its threshold are from.
        feature_gates: of kube-scheduler, as the file has them.
        emulated: the version of kube-scheduler, and the gates that were set, ``1.37 A=true``; empty where it was not
            run.
        without_effect: gates that dsched could not set, or that it decides the same with.
        attempt_milliseconds: from the start of an attempt to its bind or its refusal, as kube-scheduler measures it.
        phase_seconds: the leader's time by what it did.
        fullest: the most pods seen in each place of the queue.
        seconds: the whole workload, its preparation among it, the start of the system not.
    """

    name: str
    status: str
    message: str = ""
    labels: Sequence[str] = ()
    threshold: float = 0.0
    file: str = ""
    feature_gates: Mapping[str, bool] = {}
    emulated: str = ""
    without_effect: Mapping[str, bool] = {}
    measured: Sequence[Measured] = ()
    attempts: Mapping[str, int] = {}
    attempt_milliseconds: Figures = Figures()
    phase_seconds: Mapping[str, float] = {}
    processes: Mapping[str, ProcessUsage] = {}
    redis: RedisUsage | None = None
    fullest: Mapping[str, int] = {}
    seconds: float = 0.0


class Machine(Record, frozen=True, kw_only=True):
    """Where it ran."""

    cores: int
    memory_bytes: int
    python: str
    redis: str
    dsched: str
    load_before: float


class Run(Record, frozen=True, kw_only=True):
    """All of it.

    Attributes:
        signatures: pods from a template had a label each by which they differ.
    """

    began: str
    machine: Machine
    mode: str
    evaluators: int
    binders: int
    seed: int
    signatures: bool
    results: Sequence[Result]
