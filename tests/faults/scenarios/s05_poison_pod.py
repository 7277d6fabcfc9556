"""Whoever evaluates a certain pod dies of it, each time."""

from tests.faults import sites, stage, waits
from tests.faults.churn import wait_for
from tests.faults.history import PREFIX
from tests.faults.scenario import STANDALONE, Run, Scenario

JOURNAL = sites.folder() / "journal"
JOURNAL.mkdir(exist_ok=True)
PARKED_S = 120.0


def inject(run: Run) -> None:
    """A plugin kills its process with SIGKILL, as the kernel does when memory is short."""
    for each in JOURNAL.iterdir():
        each.unlink()
    run.pause(0.2, 0.6)
    leaders = set(run.arena.running("leader"))
    stage.put(run, 2)
    (key,) = stage.pods(run, 1, "1", 1000, mad="filter-killed")
    run.require(wait_for(lambda: any(JOURNAL.iterdir()), 60), "nobody has evaluated the pod")
    waits.go_on(run, "evaluators die of a pod")
    record = PREFIX + f"pod:{key}"
    parked = wait_for(lambda: "parked for" in str(run.arena.redis.hget(record, "message")), PARKED_S)
    run.require(parked, f"the pod was not parked: {run.arena.redis.hgetall(record)}")
    deaths = len(list(JOURNAL.iterdir()))
    run.note("evaluator's child died of a pod", deaths)
    run.pause(2.0, 4.0)
    run.require(len(list(JOURNAL.iterdir())) == deaths, "the parked pod was evaluated again at once")
    waits.go_on(run, "the pod is parked")
    asked = {int(each.name.rpartition("-")[2]) for each in JOURNAL.iterdir()}
    run.require(not asked & leaders, "a leader has evaluated the pod itself")
    run.require(set(run.arena.running("leader")) == leaders, "a leader was lost")
    stage.clear(run, key)


SCENARIO = Scenario(
    5,
    "Every process that evaluates a certain pod dies of it",
    "The pod says which plugin ran, and is parked after three such attempts (an event says so); others are not held up",
    inject,
    (STANDALONE,),
    options=(
        "--mode",
        "distributed",
        "--config",
        sites.written("mad.yaml", sites.HEAD + "profiles: [{plugins: {multiPoint: {enabled: [{name: Mad}]}}}]\n"),
    ),
    variables={"PYTHONPATH": sites.installed("mad", sites.MAD, "Mad = mad_plugin:Mad"), "MAD_JOURNAL": str(JOURNAL)},
)
