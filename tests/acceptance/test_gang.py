"""The gang plugin of the examples, installed as a package of its own, in a whole system."""

import os
import random
import shutil
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance import fixtures, processes
from tests.acceptance.fixtures import MakeSystem
from tests.acceptance.processes import wait_until
from tests.acceptance.system import System
from tests.manifests import node_manifest, pod_manifest

EXAMPLE = Path(__file__).parents[2] / "examples" / "02-gang-plugin"
Json = dict[str, Any]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example's package, as an installer that needs no network leaves it."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(EXAMPLE / "src", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    metadata = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    metadata.mkdir()
    name, version = f"Name: {project['name']}", f"Version: {project['version']}"
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\n{name}\n{version}\n")
    lines = [
        line
        for group, offered in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{plugin} = {value}" for plugin, value in offered.items()))
    ]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder


def with_plugin(site: Path) -> dict[str, str]:
    """Variables of processes that find the plugin."""
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH"))))}


@pytest.fixture
def system(make_system: MakeSystem, site: Path) -> System:
    """A system with the plugin; not started yet."""
    return make_system(**with_plugin(site))


@pytest.fixture(scope="module")
def one_for_all(redis_program: Path, tmp_path_factory: pytest.TempPathFactory, site: Path) -> Iterator[System]:
    """A running system whose gangs give up soon; see `hasty`."""
    system = System(tmp_path_factory.mktemp("hasty"), **with_plugin(site))
    try:
        up(system, deadline_s=2)
        yield system
    finally:
        fixtures.end([system])


@pytest.fixture
def hasty(one_for_all: System) -> Iterator[System]:
    """A running system whose gangs give up after two seconds, with nothing in its cluster."""
    yield one_for_all
    one_for_all.told("delete", "pods", "--all", "-n", "default")
    one_for_all.told("delete", "nodes", "--all")
    one_for_all.settle()


def configure(system: System, deadline_s: int = 10) -> None:
    """The example's configuration; ``deadline_s`` is how long members wait for each other."""
    text = (EXAMPLE / "scheduler.yaml").read_text()
    assert "deadlineSeconds: 10\n" in text
    (system.folder / "scheduler.yaml").write_text(text.replace("Seconds: 10\n", f"Seconds: {deadline_s}\n"))


def up(system: System, *options: str, deadline_s: int = 10) -> None:
    configure(system, deadline_s)
    system.up("--config", "scheduler.yaml", *(options or ("--evaluators", "0", "--binders", "1")))


def manifest(name: str) -> str:
    return str(EXAMPLE / "manifests" / f"{name}.yaml")


def gang(name: str, size: int, **spec: Any) -> list[Json]:
    """Pods of one CPU."""
    labels = {"example.com/gang": name, "example.com/gang-size": str(size)}
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    return [
        pod_manifest(f"default/{name}-{number}", labels=labels, **{"containers": [container], **spec})
        for number in range(size)
    ]


def bound(system: System, name: str) -> list[str]:
    """The nodes of a gang's members that are bound."""
    pods = system.get("pods", "-l", f"example.com/gang={name}")
    return sorted(pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName"))


def waiting(system: System) -> int:
    """How many members wait for the rest of their gang."""
    return int(system.status()["state"]["queues"]["waiting"])


def nothing_is_left(system: System) -> None:
    assert system.status()["state"]["reservations"] == 0
    assert system.ask("fsck").startswith("clean: ")


def test_the_walk_through_of_the_readme(system: System):
    """In all processes: evaluators filter by zone, binders bind."""
    up(system, "--mode", "distributed", "--evaluators", "2", "--binders", "2")
    system.ask("apply", "-f", manifest("nodes"), "-f", manifest("train"))
    system.told("wait", "--for", "scheduled", "--timeout", "60")
    assert bound(system, "train") == ["node-b1", "node-b2", "node-b3"]
    system.ask("apply", "-f", manifest("render"))
    system.settle()
    assert bound(system, "render") == []
    told = [system.ask("describe", "pod", f"render-{number}") for number in (1, 2, 3)]
    assert any("Insufficient cpu" in each for each in told)
    assert any("rejected due to timeout after waiting 10s at plugin Gang" in each for each in told)
    nothing_is_left(system)
    system.ask("apply", "-f", manifest("node-a3"))
    system.told("wait", "--for", "scheduled", "--timeout", "60")
    assert bound(system, "render") == ["node-a1", "node-a2", "node-a3"]
    nothing_is_left(system)
    log = (system.data_dir / "logs" / "leader-1.log").read_text()
    assert "judged here" not in log, "an evaluator did not answer"
    assert "refused" not in log, "an evaluator has another configuration"


def test_two_gangs_that_want_the_same_room(hasty: System):
    system = hasty
    system.apply(node_manifest("n1", cpu="3"), node_manifest("n2", cpu="2"))
    one, other = gang("one", 4), gang("other", 4)
    system.apply(*(pod for pair in zip(one, other, strict=True) for pod in pair))
    system.settle()
    landed = {name: len(bound(system, name)) for name in ("one", "other")}
    assert sorted(landed.values()) == [0, 4]
    nothing_is_left(system)
    first, second = sorted(landed, key=lambda name: -landed[name])
    system.told("delete", "pods", "-l", f"example.com/gang={first}")
    system.told("wait", "--for", "scheduled", "--timeout", "60")
    assert len(bound(system, second)) == 4
    nothing_is_left(system)


def test_a_gang_that_is_not_complete_says_so(hasty: System):
    system = hasty
    *some, last = gang("one", 3)
    system.apply(node_manifest(), *some)
    system.settle()
    assert "gang one: 2 of 3 members exist" in system.ask("queue", "gated")
    system.apply(last)
    system.told("wait", "--for", "scheduled", "--timeout", "60")
    nothing_is_left(system)


def kill_leader(system: System) -> None:
    """kill -9, and wait until the next one leads."""
    before = system.status()["state"]["epoch"]
    assert processes.kill(system.pids()["leader-1"])
    wait_until("another leads", lambda: system.status()["state"]["epoch"] > before)


def test_a_leader_that_is_killed_while_members_wait(system: System):
    up(system, deadline_s=600)
    system.apply(node_manifest("n1", cpu="2"), *gang("one", 3))
    wait_until("two members wait", lambda: waiting(system) == 2)
    kill_leader(system)
    wait_until("they wait again", lambda: waiting(system) == 2)
    assert bound(system, "one") == []
    assert system.ask("fsck").startswith("clean: ")
    system.apply(node_manifest("n2", cpu="1"))
    system.told("wait", "--for", "scheduled", "--timeout", "60")
    assert bound(system, "one") == ["n1", "n1", "n2"]
    nothing_is_left(system)


def test_a_leader_that_is_killed_again_and_again(hasty: System):
    """Gangs come all the time, and other pods that go first, to take what a gang gives back."""
    system = hasty
    system.apply(*(node_manifest(f"n{number}", cpu="4") for number in range(4)))
    rng = random.Random(7)
    sizes = {f"gang-{number}": rng.randint(2, 5) for number in range(6)}
    for number, (name, size) in enumerate(sizes.items()):
        alone = pod_manifest(f"default/alone-{number}", priority=9, preemptionPolicy="Never")
        system.apply(*gang(name, size), alone)
        if number % 2:
            kill_leader(system)
    system.settle()
    pods = [pod for pod in system.get("pods") if pod["spec"].get("nodeName")]
    landed = Counter(pod["metadata"]["labels"].get("example.com/gang") for pod in pods)
    assert landed.pop(None) == len(sizes), "pods of no gang do not wait"
    assert landed
    assert {name: count for name, count in landed.items() if count != sizes[name]} == {}
    nothing_is_left(system)
