"""What a leader decides while all kinds of things happen around it, held against kube-scheduler's own framework."""

import random

import pytest

from dsched import config
from dsched.config import Features, shown
from dsched.judging import program
from dsched.judging.judging import Judgement, Judging
from dsched.model import tape as lines_of
from dsched.model.meta import NO_NODE, NodeName
from tests import storage
from tests.builders import make_node, make_pod
from tests.integration.recording.conftest import MakeRig, MakeTape
from tests.integration.recording.scene import Scene
from tests.judge_program import judge_program
from tests.versions import V34, V37

pytestmark = pytest.mark.built

PLAIN = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


class Peaceful(Scene):
    """A scene in which nobody is more important than anybody else."""

    def _pod(self, key: str) -> dict[str, object]:
        made = super()._pod(key)
        made["spec"]["priority"] = 0
        return made


def judged(lines: list[lines_of.Line], release: str = "1.34") -> Judgement:
    with program.running(judge_program(release)) as asked:
        judging = Judging(asked)
        judging.run(lines)
    return judging.found


@pytest.mark.parametrize(("release", "features"), [("1.34", V34), ("1.37", V37)])
@pytest.mark.parametrize("seed", range(4))
def test_kube_scheduler_would_have_decided_the_same(
    make_rig: MakeRig, tape: MakeTape, seed: int, release: str, features: Features
) -> None:
    judge_program(release)
    chance = random.Random(seed)
    rig = make_rig()
    rig.configuration = config.default(features)
    played = Peaceful(rig, chance)
    for _ in range(chance.randint(0, 30)):
        played.act()
    taped = tape(rig)
    taped.seen_by(played.led)
    for _ in range(60):
        played.act()
    played.change_leader()
    taped.seen_by(played.led)
    for _ in range(40):
        played.act()
    found = judged(taped.lines(), release)
    assert found.mismatches == []
    assert found.decisions > 50
    assert found.agreed == found.decisions
    assert found.placed > 10
    assert found.refused > 10


def small(*lines: lines_of.Line) -> list[lines_of.Line]:
    """A small node with a taint and a large one without."""
    configured = config.load(PLAIN)
    nodes = [make_node("small", cpu=1, taints=["spot=:NoSchedule"]), make_node("large", cpu=8)]
    began = lines_of.Began(1, 1, 0, shown(configured), configured.hash)
    return [began, *map(lines_of.NodeIs, nodes), lines_of.Ready(), *lines]


def test_a_decision_that_was_not_kube_schedulers_is_found() -> None:
    web, big = make_pod("shop/web", cpu=1), make_pod("shop/big", cpu=9)
    said = (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint {spot: }. "
        "no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )
    right = lines_of.Choice(big.uid, 1, message=said, nominated=NO_NODE)
    for node, upstream in (("large", []), ("small", ["kube-scheduler rejects small: TaintToleration: "])):
        choices = (lines_of.Choice(web.uid, 1, NodeName(node)), right)
        lines = small(lines_of.Pending(web), lines_of.Pending(big), lines_of.Decided(1, choices))
        found = judged(lines)
        assert [each.upstream[: len(start)] for each, start in zip(found.mismatches, upstream, strict=True)] == upstream
        assert found.agreed == 2 - len(upstream)
    (differs,) = judged(small(lines_of.Pending(big), lines_of.Decided(1, (right,))), "1.37").mismatches
    assert differs.upstream.startswith("kube-scheduler says: 0/2 nodes are available: ")
    assert "1 node(s) had untolerated taint(s)" in differs.upstream


def test_which_of_two_missing_drivers_is_named_is_up_to_chance() -> None:
    """Also on a node: kube-scheduler goes through them in the order of a Go map."""
    drivers, cluster, volumes = ("a.example.com", "b.example.com"), list[lines_of.Line](), []
    for number, driver in enumerate(drivers):
        claim = storage.make_claim(f"shop/c{number}", volume=f"v{number}")
        volume = storage.make_volume(f"v{number}", claim=claim, csi=storage.csi(driver, f"h{number}"))
        needed = {"metadata": {"name": driver}, "spec": {"preventPodSchedulingIfMissing": True}}
        cluster += [
            lines_of.ObjectIs("PersistentVolumeClaim", f"shop/c{number}", claim),
            lines_of.ObjectIs("PersistentVolume", f"v{number}", volume),
            lines_of.ObjectIs("CSIDriver", driver, needed),
        ]
        volumes.append({"name": f"c{number}", "persistentVolumeClaim": {"claimName": f"c{number}"}})
    for node in ("small", "large"):  # whom preemption would evict, if that helped
        cluster.append(lines_of.PodOn(NodeName(node), make_pod(f"shop/on-{node}", node=node, priority=-1)))
    web = make_pod("shop/web", cpu=1, tolerations=["spot"], spec={"volumes": volumes})
    two, one = ("2 {} CSI driver is not installed on the node",), ("1 {} CSI driver is not installed on the node",) * 2
    for before, after in ((two, one), (one, two)):
        said = ", ".join(before).format(*drivers)
        more = ", ".join(after).format(*drivers)
        message = f"0/2 nodes are available: {said}. preemption: 0/2 nodes are available: {more}."
        choice = lines_of.Choice(web.uid, 1, message=message, nominated=NO_NODE)
        found = judged(small(*cluster, lines_of.Pending(web), lines_of.Decided(1, (choice,))), "1.37")
        assert (found.agreed, found.mismatches) == (1, [])
