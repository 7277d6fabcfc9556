"""The watch misses changes: they are gone from the history when the leader gets to them, and it lists anew while pods
are being bound."""

from tests.acceptance import processes
from tests.faults.history import PREFIX
from tests.faults.scenario import KUBERNETES, STANDALONE, Run, Scenario


def inject(run: Run) -> None:
    """A few times in a row."""
    for _ in range(run.rng.randint(2, 4)):
        run.pause(0.2, 0.6)
        if run.arena.kind == KUBERNETES:
            _kubernetes(run)
        else:
            _standalone(run)


def _kubernetes(run: Run) -> None:
    """Nothing is told for a moment; then every watch ends, and going on from where it was is refused: 410 Gone."""
    with run.arena.api.lock:
        run.arena.api.silent = True
    run.pause(0.1, 0.5)
    with run.arena.api.lock:
        run.arena.api.silent = False
        run.arena.api.compact()
        run.arena.api.end_watches()
    run.note("changes missed, 410 Gone")


def _standalone(run: Run) -> None:
    """The leader sleeps for a moment; what happened meanwhile is cut out of the log."""
    (leading,) = processes.wait_until("somebody leads", run.arena.leading)
    run.arena.halt(leading)
    since = int(run.arena.redis.get(PREFIX + "cluster:version") or 0)
    run.pause(0.1, 0.5)
    run.churn.pausing.set()
    processes.wait_until("the history is complete", run.arena.follower.caught_up, 20)
    entries = [name for name, _ in run.arena.redis.xrange(PREFIX + "cluster:log", f"({since}-0")]
    if entries:
        run.arena.redis.xdel(PREFIX + "cluster:log", *run.rng.sample(entries, max(1, len(entries) // 2)))
        run.note("changes cut out of the watch log")
    run.churn.pausing.clear()
    run.arena.go_on(leading)


SCENARIO = Scenario(
    15,
    "The watch misses changes, or is refused with 410 Gone while pods are being bound",
    "Nothing, or a pause of well under a second: the leader lists everything anew",
    inject,
    (KUBERNETES, STANDALONE),
)
