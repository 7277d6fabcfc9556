"""Binding by an extender, in a binder: who binds, and what becomes of binds without an answer (kubernetes#96579)."""

import importlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dsched.cluster.interface import Binding, BindVerdict, PodEvent
from dsched.extenders.client import OPENS_AFTER
from dsched.framework.runtime import Framework
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.plugins import profiles
from dsched.state.client import Store
from dsched.state.results import Outcome
from tests.extender import HANG_UP, SILENT, Refusal, TestExtender
from tests.integration.extenders.conftest import Start, named, text
from tests.integration.leader.rig import Led, Rig
from tests.integration.workers.agreeing import Agreeing
from tests.manifests import node_manifest, pod_manifest
from workers.running_plugins import RunningPlugins

WEB, DB = "shop/web", "shop/db"
GPU = {"managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}]}


class Bound:
    """A leader and a binder whose configuration has one extender that binds."""

    def __init__(self, rig: Rig, entry: dict[str, Any]) -> None:
        rig.configure(text(entry))
        self.rig = rig
        self.led: Led = rig.lead()

        def frameworks(config: Any, handle: Any) -> dict[str, Framework]:
            return profiles.frameworks(rig.configuration, rig.plugins, handle)

        system = SimpleNamespace(
            cluster=rig.cluster, store=rig.store, frameworks=frameworks, config=rig.configuration, following=Agreeing()
        )
        module = importlib.import_module("workers.binder")
        self.binder = module.Binder(SimpleNamespace(system=system, name="binder-0", slots=RunningPlugins()))

    def by_hand(self, question: Any) -> None:
        """What an extender does that binds."""
        key = PodKey(f"{question['PodNamespace']}/{question['PodName']}")
        binding = Binding(key, PodUid(question["PodUID"]), NodeName(question["Node"]), self.led.epoch)
        (outcome,) = self.rig.cluster.bind([binding])
        assert outcome.verdict is BindVerdict.BOUND

    def step(self) -> dict[str, Outcome]:
        """Decide, bind, and let the leader settle it: the outcomes by pod."""
        self.led.turns()
        found: dict[str, Outcome] = {}
        for request in self.led.requests():
            outcomes = self.binder.run(request)
            self.binder.report(request, outcomes)
            found |= {outcome.key: outcome for outcome in outcomes}
        self.led.settle()
        return found


Make = Callable[..., Bound]


@pytest.fixture
def make(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """A system with two pods that wait."""
    rig = Rig(store, tmp_path, monkeypatch)
    monkeypatch.setenv("DSCHED_REDIS_URL", store.url)

    def make(server: TestExtender, **more: Any) -> Bound:
        rig.apply(node_manifest("n1"), pod_manifest(WEB), pod_manifest(DB))
        return Bound(rig, named(server, "bind", **more))

    return make


def said(outcomes: dict[str, Outcome]) -> dict[str, str]:
    return {key: outcome.verdict for key, outcome in outcomes.items()}


def nodes(made: Bound) -> list[str | None]:
    return [made.rig.node_of(key) for key in (WEB, DB)]


def test_an_extender_binds(start: Start, make: Make) -> None:
    server = start()
    made = make(server)
    server.answers["bind"] = lambda question: made.by_hand(question) or {}
    assert said(made.step()) == {WEB: "bound", DB: "bound"}
    assert nodes(made) == ["n1", "n1"]
    assert sorted(question["PodName"] for _, question in server.asked) == ["db", "web"]
    assert server.asked[0][1] == {
        "PodName": server.asked[0][1]["PodName"],
        "PodNamespace": "shop",
        "PodUID": made.rig.uid(f"shop/{server.asked[0][1]['PodName']}"),
        "Node": "n1",
    }
    made.led.run()
    assert made.rig.reserved() == {}


def test_a_pod_that_an_extender_bound_is_told_of_as_scheduled(
    start: Start, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the binder, where the cluster does so for its own binds only, as an API server does."""
    server = start()
    made = make(server)
    told: list[PodEvent] = []
    monkeypatch.setattr(type(made.rig.cluster), "record", lambda self, events: told.extend(events))
    server.answers["bind"] = lambda question: made.by_hand(question) or {}
    made.step()
    assert told == []
    monkeypatch.setattr(type(made.rig.cluster), "tells_binds", False)
    made.rig.apply(pod_manifest("shop/late"))
    made.step()
    (event,) = told
    assert (event.key, event.type, event.reason) == ("shop/late", "Normal", "Scheduled")
    assert (event.message, event.scheduler) == ("Successfully assigned shop/late to n1", "default-scheduler")


def test_pods_that_are_none_of_its_business_are_bound_by_plugins(start: Start, make: Make) -> None:
    server = start(bind=lambda question: {})
    made = make(server, **GPU)
    assert said(made.step()) == {WEB: "bound", DB: "bound"}
    assert (nodes(made), server.asked) == (["n1", "n1"], [])


@pytest.mark.parametrize("answer", [Refusal(500), {"Error": "no route"}, {"error": "no route"}])
def test_an_extender_says_no(start: Start, make: Make, answer: Any) -> None:
    made = make(start(bind=lambda question: answer))
    found = made.step()
    assert said(found) == {WEB: "rejected", DB: "rejected"}
    assert {made.rig.queue(key) for key in (WEB, DB)} == {"backoff"}
    assert made.rig.condition(WEB) == ("SchedulerError", found[WEB].message)
    assert ("no route" in found[WEB].message) is isinstance(answer, dict)
    assert made.rig.reserved() == {}


@pytest.mark.parametrize("answer", [Refusal(500), {"Error": "no route"}, HANG_UP])
def test_a_failure_that_is_ignored_leaves_the_pod_to_the_plugins(start: Start, make: Make, answer: Any) -> None:
    made = make(start(bind=lambda question: answer), ignorable=True)
    assert said(made.step()) == {WEB: "bound", DB: "bound"}
    assert nodes(made) == ["n1", "n1"]


@pytest.mark.parametrize("ignorable", [False, True])
@pytest.mark.parametrize("ending", [HANG_UP, SILENT])
def test_bound_but_no_answer(start: Start, make: Make, ending: Any, ignorable: bool) -> None:
    """The pod is looked up: it is bound, and nobody binds it again."""
    server = start()
    made = make(server, httpTimeout="300ms", ignorable=ignorable)
    server.answers["bind"] = lambda question: made.by_hand(question) or ending
    assert said(made.step()) == {WEB: "bound", DB: "bound"}
    made.led.run()
    assert len(made.rig.binds()) == 2
    assert len(server.asked) == 2
    assert made.rig.reserved() == {}


def test_neither_bound_nor_answered(start: Start, make: Make) -> None:
    """The reservation stands, nobody takes it for bound, and the extender is asked again."""
    server = start(bind=lambda question: SILENT)
    made = make(server, httpTimeout="300ms")
    assert said(made.step()) == {WEB: "unknown", DB: "unknown"}
    assert nodes(made) == ["", ""]
    assert sorted(made.rig.reserved()) == [DB, WEB]
    server.answers["bind"] = lambda question: made.by_hand(question) or {}
    made.rig.clock.advance(60)
    assert said(made.step()) == {WEB: "bound", DB: "bound"}
    made.led.run()
    assert (nodes(made), made.rig.reserved()) == (["n1", "n1"], {})


def test_an_extender_that_never_answers(start: Start, make: Make) -> None:
    """When its breaker is open, the pods are put back at once, their room is free, and they say why."""
    made = make(start(bind=lambda question: SILENT), httpTimeout="300ms")
    found = made.step()
    for _ in range(OPENS_AFTER):
        assert set(said(found).values()) == {"unknown"}
        made.rig.clock.advance(60)
        found = made.step()
        if "rejected" in said(found).values():
            break
    assert said(found) == {WEB: "rejected", DB: "rejected"}
    assert made.rig.reserved() == {}
    assert {made.rig.queue(key) for key in (WEB, DB)} == {"backoff"}
    assert "does not answer; it is asked again in" in made.rig.condition(WEB)[1]


def test_an_extender_that_says_it_has_and_has_not(start: Start, make: Make) -> None:
    """Its word is not taken for it: the pod is looked up, and the extender is asked again."""
    server = start(bind=lambda question: {})
    made = make(server)
    found = made.step()
    assert {(each.verdict, each.message) for each in found.values()} == {
        ("unknown", "the extender says that it has bound the pod, the cluster does not")
    }
    assert sorted(made.rig.reserved()) == [DB, WEB]
    server.answers["bind"] = lambda question: made.by_hand(question) or {}
    made.rig.clock.advance(60)
    assert said(made.step()) == {WEB: "bound", DB: "bound"}
    made.led.run()
    assert nodes(made) == ["n1", "n1"]


def test_a_pod_that_was_bound_meanwhile_is_not_bound_again(start: Start, make: Make) -> None:
    """A second message about it, which came late."""
    server = start()
    made = make(server)
    server.answers["bind"] = lambda question: made.by_hand(question) or {}
    made.led.turns()
    requests = made.led.requests()
    for request in (*requests, *requests):
        assert {outcome.verdict for outcome in made.binder.run(request)} == {"bound"}
    assert len(server.asked) == 2
    assert len(made.rig.binds()) == 2
