"""``dsched judge``: what is asked, what is made of the answers, and its exit codes. A script stands for the program."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from dsched import config
from dsched.cli.commands import judge
from dsched.config import shown
from dsched.model import tape
from dsched.model.meta import NodeName, PodUid
from dsched.model.pod import Pod
from dsched.recording.files import RecordingFile
from tests.builders import make_node, make_pod

NOW_MS = 1_700_000_000_000
FAKE = Path(__file__).with_name("fake_judge.py")
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
NO_ROOM = "0/2 nodes are available: 2 Insufficient cpu."


class Judged:
    """A recording of two nodes, and a program with answers.

    Attributes:
        file: the recording.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / "monday.jsonl.gz"
        self._program = folder / "judge"
        self._answers = folder / "answers.json"
        self._told = folder / "told.jsonl"
        self._program.write_text(f"#!/bin/sh\nexec {sys.executable} {FAKE} {self._answers} {self._told}\n")
        self._program.chmod(0o755)

    def record(self, *lines: tape.Line, text: str = HEAD, end: bool = True, version: str = "", gates: str = "") -> None:
        configured = config.load(text)
        began = tape.Began(NOW_MS, 1, 0, shown(configured), configured.hash, version=version, gates=gates)
        nodes = [tape.NodeIs(make_node(name, cpu=4)) for name in ("n1", "n2")]
        file = RecordingFile(self.file, "default", NOW_MS)
        file.add(b"".join(tape.encode(line) + b"\n" for line in (began, *nodes, tape.Ready(), *lines)))
        file.flush()
        if end:
            file.end("test", NOW_MS + 1000)
        file.close()

    def run(self, *answers: dict[str, Any], words: tuple[str, ...] = ()) -> Any:
        self._answers.write_text(json.dumps(answers))
        app = typer.Typer()
        judge.register(app)
        return CliRunner().invoke(app, [str(self.file), "--program", str(self._program), *words])

    def report(self, *answers: dict[str, Any]) -> dict[str, Any]:
        done = self.run(*answers, words=("-o", "json"))
        found: dict[str, Any] = json.loads(done.stdout)
        assert done.exit_code == (1 if found["differ"] else 0), done.output
        return found

    def told(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._told.read_text().splitlines()]


@pytest.fixture
def judged(tmp_path: Path) -> Judged:
    return Judged(tmp_path)


def decided(*choices: tape.Choice) -> tape.Decided:
    return tape.Decided(NOW_MS, choices)


def placed(pod: Pod, node: str) -> tape.Choice:
    return tape.Choice(pod.uid, 1, NodeName(node))


def refused(pod: Pod, message: str = NO_ROOM, nominated: str = "", victims: tuple[str, ...] = (), **more: Any) -> Any:
    uids = tuple(PodUid(victim) for victim in victims)
    return tape.Choice(pod.uid, 1, message=message, nominated=NodeName(nominated), victims=uids, **more)


def best(*nodes: str, asked: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Nodes with the highest total; what is said of n1, which the pods got."""
    about = {"node": "n1", "best": "n1" in nodes} | (asked or {})
    answer = {"name": "", "feasible": 2, "best": list(nodes), "equals": len(nodes), "asked": about}
    return answer | {"instead": {"node": nodes[0]}} | more


def nowhere(message: str = NO_ROOM, nominated: dict[str, list[str]] | None = None, **more: Any) -> dict[str, Any]:
    preemption = {"nominated": nominated or {"": []}, **more}
    answer = {"name": "", "feasible": 0, "best": [], "equals": 0, "asked": {"node": "n1"}}
    return answer | {"message": message, "preemption": preemption}


WEB = make_pod("shop/web", cpu=1)


def test_a_node_among_the_best_is_right(judged: Judged) -> None:
    judged.record(tape.Pending(WEB), decided(placed(WEB, "n1")))
    found = judged.run(best("n1", "n2"))
    assert found.exit_code == 0, found.output
    assert found.stdout == (
        "1 decisions (1 placed, 0 refused, 0 preempting) against kube-scheduler 1.34: 1 agree, 0 differ, "
        "0 cannot be judged\n"
    )


def test_another_node_is_a_difference_with_its_reasons(judged: Judged) -> None:
    judged.record(tape.Pending(WEB), decided(placed(WEB, "n1")))
    answer = best(
        "n2",
        asked={"node": "n1", "total": 310, "scores": {"TaintToleration": 300, "ImageLocality": 10}},
        instead={"node": "n2", "total": 352, "scores": {"TaintToleration": 300, "ImageLocality": 52}},
    )
    found = judged.run(answer)
    assert found.exit_code == 1
    assert "line 7, pod shop/web, attempt 1: recorded on n1\n" in found.stdout
    assert "kube-scheduler takes n2: total 352 against 310 of n1 (ImageLocality 52 against 10)" in found.stdout


def test_a_node_that_is_rejected_is_a_difference(judged: Judged) -> None:
    judged.record(tape.Pending(WEB), decided(placed(WEB, "n1")))
    rejected = {"code": "Unschedulable", "plugin": "NodeResourcesFit", "reasons": ["Insufficient cpu"]}
    (differs,) = judged.report(best("n2", asked={"node": "n1", "rejected": rejected}))["differ"]
    assert differs["upstream"] == "kube-scheduler rejects n1: NodeResourcesFit: Insufficient cpu"
    (differs,) = judged.report(nowhere())["differ"]
    assert differs["upstream"] == f"kube-scheduler finds no node: {NO_ROOM}"


def test_a_refusal_needs_the_same_message(judged: Judged) -> None:
    judged.record(tape.Pending(WEB), decided(refused(WEB)))
    assert judged.report(nowhere())["agreed"] == 1
    (differs,) = judged.report(nowhere("0/2 nodes are available."))["differ"]
    assert differs["upstream"] == "kube-scheduler says: 0/2 nodes are available."
    (differs,) = judged.report(best("n1"))["differ"]
    assert differs["upstream"] == "kube-scheduler places the pod: 2 nodes are feasible, best n1"


def test_preemption_needs_a_possible_node_and_its_victims(judged: Judged) -> None:
    low = make_pod("shop/low", cpu=4, status={"startTime": "2026-01-01T00:00:00Z"})
    lower = make_pod("shop/lower", cpu=4, priority=-5)
    there = [tape.PodOn(NodeName("n1"), low), tape.PodOn(NodeName("n2"), lower)]
    judged.record(*there, tape.Pending(WEB), decided(refused(WEB, nominated="n1", victims=(low.uid,))))
    assert judged.report(nowhere(nominated={"n1": ["shop/low"], "n2": ["shop/lower"]}))["preempted"] == 1
    (differs,) = judged.report(nowhere(nominated={"n2": ["shop/lower"]}))["differ"]
    assert differs["upstream"] == "kube-scheduler nominates n2 (deleting shop/lower), not n1"
    (differs,) = judged.report(nowhere(nominated={"n1": ["shop/lower"]}))["differ"]
    assert differs["upstream"] == "kube-scheduler deletes shop/lower on n1, recorded was shop/low"
    assert judged.report(nowhere(nominated={"n1": ["shop/low"]}, sampled=True))["unjudged"].popitem()[1] == 1


def test_equally_important_victims_are_an_accident(judged: Judged) -> None:
    pods = [make_pod(f"shop/low-{number}", cpu=2) for number in range(2)]
    there = [tape.PodOn(NodeName("n1"), pod) for pod in pods]
    judged.record(*there, tape.Pending(WEB), decided(refused(WEB, nominated="n1", victims=(pods[0].uid,))))
    found = judged.report(nowhere(nominated={"n1": ["shop/low-1"]}))
    assert (found["agreed"], found["differ"]) == (0, [])
    assert list(found["unjudged"]) == [
        "which of equally important pods has to go is an accident of the order that kube-scheduler has them in"
    ]


def test_each_decision_sees_those_before_it(judged: Judged) -> None:
    """A pod is placed, another is promised a node, a third of higher priority takes the promise away."""
    low, high = make_pod("shop/low", cpu=4), make_pod("shop/high", cpu=4, priority=9)
    choices = (placed(WEB, "n1"), refused(low, nominated="n2"), refused(high, nominated="n2"))
    judged.record(*(tape.Pending(pod) for pod in (WEB, low, high)), decided(*choices))
    judged.report(best("n1"), *[nowhere(nominated={"n2": []})] * 2)
    told = judged.told()[4:]
    assert [next(iter(line)) for line in told] == ["place", "decide", "promise", "decide", "promise", "promise"]
    promises = [
        (line["promise"]["pod"]["metadata"]["name"], line["promise"]["node"]) for line in told if "promise" in line
    ]
    assert promises == [("low", "n2"), ("low", ""), ("high", "n2")]


def test_the_cluster_is_told_as_it_was_recorded(judged: Judged) -> None:
    bound = make_pod("shop/bound", cpu=1)
    claim = {"metadata": {"name": "data"}, "spec": {}}
    judged.record(
        tape.PodOn(NodeName("n1"), bound),
        tape.ObjectIs("PersistentVolumeClaim", "default/data", claim),
        tape.ObjectIs("Event", "default/x", {"metadata": {"name": "x"}}),
        tape.PodOff(bound.uid),
        tape.ObjectGone("PersistentVolumeClaim", "default/data"),
        tape.NodeGone(NodeName("n2")),
        tape.Pending(WEB),
        decided(placed(WEB, "n1")),
    )
    judged.report(best("n1"))
    config_line, *told, question, place = judged.told()
    assert config_line["begin"]["config"]["profiles"][0]["schedulerName"] == "default-scheduler"
    changes = [(what, line[what]["kind"]) for line in told for what in line]
    assert changes == [
        ("set", "nodes"),
        ("set", "nodes"),
        ("set", "pods"),
        ("set", "persistentVolumeClaims"),
        ("gone", "pods"),
        ("gone", "persistentVolumeClaims"),
        ("gone", "nodes"),
    ]
    assert told[2]["set"]["object"]["spec"]["nodeName"] == "n1"
    assert told[3]["set"]["object"]["metadata"] == {"name": "data", "namespace": "default"}
    assert [line["gone"]["key"] for line in told[4:]] == ["shop/bound", "default/data", "n2"]
    assert question["decide"]["node"] == "n1"
    assert place == {"place": {"node": "n1"}}


def test_a_recording_without_decisions_is_no_error(judged: Judged) -> None:
    judged.record(tape.Pending(WEB))
    assert judged.run().stdout == "nothing was decided\n"


def test_a_pod_that_loses_its_place_is_taken_away(judged: Judged) -> None:
    """Its bind failed; or it changed meanwhile and is bound."""
    other = make_pod("shop/other")
    changed = make_pod("shop/other", labels={"app": "other"})
    judged.record(
        tape.Pending(WEB),
        tape.Pending(other),
        decided(placed(WEB, "n1"), placed(other, "n1")),
        tape.Released(WEB.uid),
        tape.Pending(changed),
        tape.Bound(other.uid),
        tape.NoLongerPending(other.uid),
        decided(placed(WEB, "n1")),
    )
    judged.report(*[best("n1")] * 3)
    told = [line for line in judged.told()[3:] if "decide" not in line and "place" not in line]
    assert told[0] == {"gone": {"kind": "pods", "key": "shop/web"}}
    assert told[1]["set"]["object"]["metadata"]["labels"] == {"app": "other"}
    assert told[1]["set"]["object"]["spec"]["nodeName"] == "n1"
    assert len(told) == 2


def test_what_cannot_be_judged_is_counted_with_its_reason(judged: Judged) -> None:
    failing = make_pod("shop/failing")
    judged.record(
        tape.Pending(WEB),
        tape.Pending(failing),
        decided(placed(WEB, "n1"), refused(failing, "a plugin failed", failed=True), tape.Choice(PodUid("unknown"), 1)),
    )
    found = judged.report({"name": "", "unjudged": 'no plugin "Ours"'}, nowhere())
    assert (found["decisions"], found["agreed"], found["differ"]) == (3, 0, [])
    assert found["unjudged"] == {
        'no plugin "Ours"': 1,
        "the attempt ended in an error of a plugin": 1,
        "the recording does not say what pod it is": 1,
    }


def test_extenders_and_own_limits_cannot_be_judged(judged: Judged, tmp_path: Path) -> None:
    stopped = refused(WEB, preempting={"evictions": "5", "stopped_until_ms": str(NOW_MS + 1000)})
    judged.record(tape.Pending(WEB), decided(stopped))
    assert list(judged.report(nowhere())["unjudged"]) == [
        "preemption was stopped, or kept away from a node, by limits that only dsched has"
    ]
    judged.file.unlink()
    extended = HEAD + "extenders: [{urlPrefix: 'http://localhost:1/', filterVerb: filter}]\n"
    judged.record(tape.Pending(WEB), decided(placed(WEB, "n1")), text=extended)
    found = judged.report(best("n2"))
    assert list(found["unjudged"]) == ["extenders have a say in it, and they are not asked again"]
    assert "extenders" not in judged.told()[0]["begin"]["config"]


def test_a_sampled_search_may_have_missed_the_best_node(judged: Judged) -> None:
    more = [tape.NodeIs(make_node(f"m{number}")) for number in range(200)]
    judged.record(*more, tape.Pending(WEB), decided(placed(WEB, "n1")), text=HEAD + "percentageOfNodesToScore: 50\n")
    assert list(judged.report(best("n2"))["unjudged"]) == [
        "kube-scheduler looks at some of the nodes here (percentageOfNodesToScore), at which is chance"
    ]
    assert judged.report(best("n1"))["agreed"] == 1
    assert len(judged.report(best("n2", asked={"node": "n1", "rejected": {"plugin": "NodeName"}}))["differ"]) == 1


def test_long_lists_are_capped_and_wide_shows_all(judged: Judged) -> None:
    pods = [make_pod(f"shop/p{number}") for number in range(15)]
    judged.record(*(tape.Pending(pod) for pod in pods), decided(*(placed(pod, "n1") for pod in pods)))
    answers = [best("n2")] * len(pods)
    capped, wide = judged.run(*answers).stdout, judged.run(*answers, words=("-o", "wide")).stdout
    assert capped.count("recorded on n1") == 10
    assert "… 5 more; -o wide lists all" in capped
    assert wide.count("recorded on n1") == 15


def test_a_program_that_fails_is_told_with_its_words(judged: Judged) -> None:
    judged.record(tape.Pending(WEB), decided(placed(WEB, "n1")))
    found = judged.run()
    assert found.exit_code == 2
    assert "error: the judging program has ended: exit code 1; no answers are left" in found.stderr


def test_a_missing_program_is_told_with_what_builds_it(judged: Judged, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(judged.file.parent / "empty"))
    monkeypatch.delenv("DSCHED_JUDGE", raising=False)
    judged.record()
    app = typer.Typer()
    judge.register(app)
    found = CliRunner().invoke(app, [str(judged.file), "--emulated-version", "1.37"])
    assert found.exit_code == 2
    assert "build it with 'scripts/build-judge 1.37'" in found.stderr.replace("\n", " ")


def test_a_file_that_is_no_recording_is_refused(judged: Judged) -> None:
    judged.file.write_text("nothing")
    found = judged.run()
    assert found.exit_code == 2
    assert "is not a recording of dsched" in found.stderr.replace("\n", " ")


def test_a_recording_that_was_broken_off_is_judged_up_to_there(judged: Judged) -> None:
    judged.record(tape.Pending(WEB), decided(placed(WEB, "n1")), end=False)
    found = judged.run(best("n1"))
    assert found.exit_code == 0
    assert "was broken off behind line 7" in found.stderr.replace("\n", " ")


def test_the_release_that_the_leader_emulated_is_asked(judged: Judged) -> None:
    judged.record(tape.Pending(WEB), decided(placed(WEB, "n1")), version="1.37")
    found = judged.run(best("n1"))
    assert "against kube-scheduler 1.37: 1 agree" in found.stdout
    found = judged.run(best("n1"), words=("--emulated-version", "1.34"))
    assert "against kube-scheduler 1.34: 1 agree" in found.stdout


def test_a_release_without_a_program_has_to_be_chosen(judged: Judged) -> None:
    judged.record(version="1.38")
    found = judged.run()
    assert found.exit_code == 2
    assert "say with --emulated-version which is to be asked: 1.34 or 1.35 or 1.36 or 1.37" in found.stderr.replace(
        "\n", " "
    )


def test_gates_of_dscheds_own_are_told(judged: Judged) -> None:
    lines = tape.Pending(WEB), decided(placed(WEB, "n1"))
    judged.record(*lines, version="1.37", gates="DschedDeviceBestFit=true,DschedDevicePreemption=false")
    done = judged.run(best("n1"))
    assert "recorded with DschedDeviceBestFit, which kube-scheduler does not have" in " ".join(done.output.split())
    judged.file.unlink()
    judged.record(*lines, version="1.37")
    assert "note: recorded with" not in judged.run(best("n1")).output
