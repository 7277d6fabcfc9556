"""An extender hangs, answers nonsense, 5xx or nothing, one after the other; a plugin hangs besides."""

import atexit

from tests.extender import DRIPPING, HANG_UP, SILENT, Raw, Refusal, TestExtender, keeping, names
from tests.faults import sites, waits
from tests.faults.churn import wait_for
from tests.faults.scenario import STANDALONE, Run, Scenario

RESOURCE = "example.com/dev"
WAYS = {
    "hangs": SILENT,
    "never ends": DRIPPING,
    "hangs up": HANG_UP,
    "says 503": Refusal(503),
    "says no JSON": Raw(b"\xc1 nonsense"),
    "names nodes that are not there": {"NodeNames": ["nowhere"]},
}
EXTENDER = TestExtender()
EXTENDER.answers["filter"] = lambda question: keeping(question, *names(question))
atexit.register(EXTENDER.stop)


def inject(run: Run) -> None:
    """Pods that want what it manages wait meanwhile; all others, and those of the plugin that hangs, do not care."""
    stage = run.churn.node("extended")
    stage["spec"] = {}
    stage["status"] = {"allocatable": {"cpu": "16", "memory": "32Gi", "pods": "100", RESOURCE: "50"}}
    run.churn.put_nodes(stage)
    hung = run.churn.pod(plain=True)
    hung["metadata"]["labels"]["mad"] = "filter-loops"
    key, good = f"default/{hung['metadata']['name']}", EXTENDER.answers["filter"]
    ways = list(WAYS)
    run.rng.shuffle(ways)
    concerned: list[str] = []
    try:
        run.arena.put("Pod", hung)
        for way in ways[:3]:
            EXTENDER.answers["filter"] = lambda _, way=way: WAYS[way]  # type: ignore[misc]
            run.note(f"extender {way}")
            concerned += _concerned(run, 2)
            run.pause(0.3, 1.0)
            waits.go_on(run, "an extender fails, a plugin hangs", 3)
    finally:
        EXTENDER.over.set()  # what hangs is let go
        EXTENDER.over.clear()
        EXTENDER.answers["filter"] = good
        run.churn.delete_pods(key)
    run.require(wait_for(lambda: len(waits.done(run, concerned)) == len(concerned), 90), "I9 pods of the extender wait")
    run.churn.delete_pods(*concerned)


def _concerned(run: Run, count: int) -> list[str]:
    made = [run.churn.pod(cpu="50m", plain=True) for _ in range(count)]
    for pod in made:
        resources = pod["spec"]["containers"][0]["resources"]
        resources["requests"][RESOURCE], resources["limits"] = "1", {RESOURCE: "1"}
    run.arena.put("Pod", *made)
    return [f"default/{pod['metadata']['name']}" for pod in made]


CONFIGURATION = sites.HEAD + (
    "profiles: [{plugins: {multiPoint: {enabled: [{name: Mad}]}}}]\n"
    "extenders:\n"
    f"- urlPrefix: {EXTENDER.url}\n"
    "  filterVerb: filter\n"
    "  nodeCacheCapable: true\n"
    "  httpTimeout: 1s\n"
    f"  managedResources: [{{name: {RESOURCE}}}]\n"
)

SCENARIO = Scenario(
    21,
    "An extender hangs, fails or answers nonsense, and a plugin hangs",
    "Its pods say so and are tried again; all others are scheduled, later by the time limits while those are new",
    inject,
    (STANDALONE,),
    options=("--config", sites.written("extender.yaml", CONFIGURATION)),
    variables={
        "PYTHONPATH": sites.installed("mad", sites.MAD, "Mad = mad_plugin:Mad"),
        "MAD_JOURNAL": str(sites.folder()),
        "DSCHED_PLUGIN_TIMEOUT": "2",
    },
    goal_s=90.0,
)
