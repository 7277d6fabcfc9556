"""A binder is stopped between asking whether its reservations stand and binding, for longer than the lease."""

from tests.faults import points
from tests.faults.arena import LEASE_S
from tests.faults.proxy import When
from tests.faults.scenario import KUBERNETES, STANDALONE, Run, Scenario


def inject(run: Run) -> None:
    """SIGSTOP at the answer to bind_begin; half of the time the leader, too, so that the epoch changes meanwhile."""
    run.pause(0.3, 1.2)
    stopped: list[int] = []

    def stop(pid: int) -> None:
        run.arena.halt(pid)
        stopped.append(pid)

    tap = run.arena.proxy.tap(points.BIND_BEGIN, When.REPLY, stop)
    run.require(tap.fired.wait(20), "no binder has begun to bind")
    run.note("SIGSTOP binder before its bind")
    if run.rng.random() < 0.5:
        for pid in run.arena.leading():
            run.arena.halt(pid)
            run.note("SIGSTOP leader")
    run.pause(LEASE_S * 1.1, LEASE_S * 2)
    run.arena.go_on()
    run.pause(0.3, 0.6)


SCENARIO = Scenario(
    3,
    "A binder is stopped between its check and its bind, for longer than the lease",
    "The pods it held are bound by another binder after about 5 s; its late bind is refused (API servers: see below)",
    inject,
    (STANDALONE, KUBERNETES),
)
