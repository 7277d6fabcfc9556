"""The binding cycle of a binder with plugins of its own, in this process."""

import importlib
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import redis

from dsched.errors import ClusterUnavailable, RedisUnavailable
from dsched.framework.interface import SKIP, Code, Status
from dsched.framework.runtime import Framework
from dsched.model.messages import BindItem, BindRequest
from dsched.model.meta import PodKey
from dsched.plugins.default_binder import DefaultBinder
from dsched.state import keys
from dsched.state.client import Store
from dsched.state.results import Outcome
from tests.integration.leader.rig import Rig
from tests.integration.workers.agreeing import Agreeing
from tests.manifests import node_manifest, pod_manifest
from tests.redis_server import RedisServer
from tests.unit.framework.frameworks import NAME, framework_of
from workers.running_plugins import RunningPlugins

PODS = ("shop/a", "shop/b")
Run = Callable[..., dict[str, tuple[str, str]]]


@pytest.fixture
def binder_module(redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Importing it looks for a system in the environment."""
    monkeypatch.setenv("DSCHED_REDIS_URL", redis_server.url)
    return importlib.import_module("workers.binder")


@pytest.fixture
def rig(store: Store, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Rig:
    return Rig(store, tmp_path, monkeypatch)


@pytest.fixture
def run(binder_module: ModuleType, rig: Rig) -> Run:
    """Runs the cycle for two reserved pods with some plugins; the verdict and message a pod."""
    rig.apply(node_manifest("n1"), *(pod_manifest(key) for key in PODS))
    led = rig.lead()
    led.turns()
    (request,) = led.requests()

    def run(*plugins: type[Any], before: Callable[[], None] = lambda: None) -> dict[str, tuple[str, str]]:
        def frameworks(config: Any, handle: Any) -> dict[str, Framework]:
            return {NAME: framework_of(*plugins, handle=handle)}

        system = SimpleNamespace(
            cluster=rig.cluster, store=rig.store, frameworks=frameworks, config=rig.configuration, following=Agreeing()
        )
        binder = binder_module.Binder(SimpleNamespace(system=system, name="binder-0", slots=RunningPlugins()))
        before()
        outcomes: list[Outcome] = binder.run(request)
        return {outcome.key: (outcome.verdict, outcome.message) for outcome in outcomes}

    return run


@pytest.mark.parametrize(
    "error",
    [redis.ConnectionError("away"), RedisUnavailable("away"), ClusterUnavailable("away")],
    ids=lambda error: type(error).__name__,
)
def test_a_task_that_cannot_read_its_pods_is_dropped(
    binder_module: ModuleType, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    """It does not fail: a pool can be deaf after that (`workers.app.WorkerApp.task`)."""

    def lost(payload: bytes) -> None:
        raise error

    worker, name = binder_module.worker, f"tests.{type(error).__name__}"
    worker.task(name, lost)
    worker.celery.tasks[name].run(b"")
    assert [(each.message, each.error) for each in caplog.records] == [("task dropped", "away")]


CALLS: list[str] = []


def plugin(called: str, **answers: Any) -> type[Any]:
    """A plugin with these methods: each answers with a value, or with what a function of the pod's key says."""

    def method(point: str, answer: Any) -> Any:
        def call(self: Any, state: Any, pod: Any, node: Any) -> Any:
            CALLS.append(f"{called}.{point} {pod.key}")
            return answer(pod.key) if callable(answer) else answer

        return call

    methods = {point: method(point, answer) for point, answer in answers.items()}
    return type(called, (), {"name": called, "__init__": lambda self, args, handle: None, **methods})


@pytest.fixture(autouse=True)
def _no_calls_yet() -> None:
    CALLS.clear()


BOUND = ("bound", "")


def test_only_the_default_binder(run: Run, rig: Rig) -> None:
    assert run(DefaultBinder) == {"shop/a": BOUND, "shop/b": BOUND}
    assert [rig.node_of(key) for key in PODS] == ["n1", "n1"]


def test_the_whole_cycle_in_order(run: Run) -> None:
    first = plugin("First", pre_bind=None, bind=SKIP, post_bind=None)
    assert run(first, DefaultBinder) == {"shop/a": BOUND, "shop/b": BOUND}
    points = ("First.pre_bind", "First.bind", "First.post_bind")
    assert sorted(CALLS) == sorted(f"{point} {key}" for key in PODS for point in points)
    assert [call for call in CALLS if "shop/a" in call] == [f"{point} shop/a" for point in points]


def test_a_pod_whose_pre_bind_fails_is_not_bound(run: Run, rig: Rig) -> None:
    picky = plugin("Picky", pre_bind=lambda key: Status(Code.ERROR, ("no volume",)) if key == "shop/a" else None)
    after = plugin("After", post_bind=None)
    assert run(picky, DefaultBinder, after) == {
        "shop/a": ("rejected", 'running PreBind plugin "Picky": no volume'),
        "shop/b": BOUND,
    }
    assert [rig.node_of(key) for key in PODS] == ["", "n1"]
    assert "After.post_bind shop/b" in CALLS
    assert "After.post_bind shop/a" not in CALLS


def test_a_pod_whose_pre_bind_waits_says_so(run: Run, rig: Rig) -> None:
    waits = plugin("Waits", pre_bind=lambda key: Status(Code.WAIT, ("being made",)) if key == "shop/a" else None)
    assert run(waits, DefaultBinder) == {"shop/a": ("waiting", "being made"), "shop/b": BOUND}
    assert [rig.node_of(key) for key in PODS] == ["", "n1"]


def test_a_reservation_that_ends_while_pre_bind_takes_its_time(run: Run, rig: Rig) -> None:
    """Another binder was asked meanwhile, and has failed: the room has been given away."""

    def lose(key: str) -> None:
        (pod,) = rig.cluster.get_pods([PodKey("shop/a")])
        assert pod is not None
        rig.store.redis.hdel(rig.store.key(keys.RESERVATIONS.name), pod.uid)

    slow = plugin("Slow", pre_bind=lose)
    own = plugin("Own", bind=None)
    assert run(slow, own) == {"shop/a": ("reservation-lost", "its reservation does not stand"), "shop/b": BOUND}
    assert "Own.bind shop/a" not in CALLS


def test_a_plugin_that_binds_by_itself(run: Run, rig: Rig) -> None:
    """It takes one of the pods; the other one goes on to the next plugin."""
    own = plugin("Own", bind=lambda key: None if key == "shop/a" else SKIP)
    assert run(own, DefaultBinder) == {"shop/a": BOUND, "shop/b": BOUND}
    assert rig.node_of("shop/b") == "n1"


def test_a_bind_plugin_that_fails(run: Run, rig: Rig) -> None:
    def fail(key: str) -> Any:
        raise LookupError("no route")

    found = run(plugin("Own", bind=fail), DefaultBinder)
    assert {verdict for verdict, _ in found.values()} == {"rejected"}
    assert "LookupError: no route" in found["shop/a"][1]
    assert rig.binds() == []


def test_nobody_binds(run: Run) -> None:
    found = run(plugin("Own", bind=SKIP))
    assert found == dict.fromkeys(PODS, ("rejected", "no bind plugin took the pod"))


@pytest.mark.parametrize("point", ["pre_bind", "bind", "post_bind"])
def test_plugins_never_see_another_pod_of_the_name(run: Run, rig: Rig, point: str) -> None:
    """The pod was deleted and made again meanwhile; the new one has no reservation."""
    nosy = plugin("Nosy", **{point: SKIP if point == "bind" else None})
    found = run(nosy, DefaultBinder, before=lambda: rig.apply(pod_manifest("shop/a", uid="another")))
    assert found["shop/a"][0] in ("gone", "rejected")
    assert found["shop/b"] == BOUND
    assert [call for call in CALLS if "shop/a" in call] == []
    assert rig.node_of("shop/a") == ""


def test_a_plugin_may_bind_through_the_cluster(run: Run, rig: Rig) -> None:
    class Through:
        name = "Through"

        def __init__(self, args: Any, handle: Any) -> None:
            self._handle = handle

        def bind(self, state: Any, pod: Any, node: Any) -> Status | None:
            found: Status | None = self._handle.bind(pod, node)
            return found

    assert run(Through) == {"shop/a": BOUND, "shop/b": BOUND}
    assert run(Through) == {"shop/a": BOUND, "shop/b": BOUND}  # again is a no-op
    assert [rig.events(key) for key in PODS] == [[("Scheduled", 1)]] * 2


def test_what_plugins_of_the_cycle_left_arrives(run: Run, rig: Rig, binder_module: ModuleType) -> None:
    seen: list[Any] = []

    class Reads:
        name = "Reads"

        def __init__(self, args: Any, handle: Any) -> None:
            pass

        def pre_bind(self, state: Any, pod: Any, node: Any) -> None:
            seen.append(state.shared)

    item = BindItem("shop/a", rig.uid("shop/a"), "n1", 1, {"Reads": ["disk-7"]})
    request = BindRequest(epoch=1, config=rig.configuration.hash, profile=NAME, pods=[item])
    system = SimpleNamespace(
        cluster=rig.cluster,
        store=rig.store,
        frameworks=lambda config, handle: {NAME: framework_of(Reads, DefaultBinder, handle=handle)},
        config=rig.configuration,
        following=Agreeing(),
    )
    binder_module.Binder(SimpleNamespace(system=system, name="binder-0", slots=RunningPlugins())).run(request)
    assert seen == [{"Reads": ["disk-7"]}]


def test_a_reservation_that_is_lost_in_between(run: Run, rig: Rig) -> None:
    class Slow:
        name = "Slow"

        def __init__(self, args: Any, handle: Any) -> None:
            pass

        def pre_bind(self, state: Any, pod: Any, node: Any) -> None:
            rig.store.redis.hdel(rig.store.key(keys.RESERVATIONS.name), pod.uid)

    found = run(Slow, DefaultBinder)
    assert {verdict for verdict, _ in found.values()} == {"reservation-lost"}
    assert rig.binds() == []
