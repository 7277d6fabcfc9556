"""The compose file, run end to end: docs/compose.md as it is written, and what a system outlives."""

import json
import shlex
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dsched.supervisor import embedded
from tests.acceptance.processes import wait_until
from tests.compose.engine import FIRST_S, ROOT, Engine
from tests.docs.test_commands import commands

pytestmark = [pytest.mark.built, pytest.mark.timeout(FIRST_S)]

PAGE = ROOT / "docs" / "compose.md"
EXAMPLE = ROOT / "examples" / "01-first-cluster"
SHELL = "set -euo pipefail\nshopt -s expand_aliases\n"


class Compose:
    """The system of the compose file, on an engine of the tests."""

    def __init__(self, engine: Engine, words: str) -> None:
        self.engine = engine
        self.words = words.split()

    def __call__(self, *arguments: str, check: bool = True) -> str:
        return self.engine.run([*self.words, *arguments], check=check).stdout

    def shell(self, script: str) -> str:
        """Run lines in the root of the checkout, with dsched and redis-cli at hand; returns what they print."""
        return self.engine.run(["bash", "-c", SHELL + script]).stdout

    def up(self, *arguments: str) -> None:
        """Start, and wait until all containers are well, also where there is no ``--wait``."""
        self("up", "--detach", *arguments)
        wait_until("all containers are healthy", self.healthy, 180.0)

    def containers(self, service: str) -> list[str]:
        return self("ps", "--quiet", service).split()

    def healthy(self) -> bool:
        numbers = self("ps", "--quiet").split()
        if not numbers:
            return False
        told = json.loads(self.engine.output("docker", "inspect", *numbers))
        return all(each["State"].get("Health", {}).get("Status", "healthy") == "healthy" for each in told)

    def dsched(self, command: str) -> str:
        """A command of the host's dsched, by the published port."""
        return self.shell(f"export DSCHED_REDIS_URL=redis://127.0.0.1:6379/0\ndsched {command}")

    def pods(self) -> dict[str, str]:
        """Name to node of each pod, empty where it has none."""
        found = json.loads(self.dsched("get pods -A -o json"))["items"]
        return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in found}

    def leader(self) -> str:
        """The container that leads, empty while none does."""
        identity = json.loads(self.dsched("status -o json"))["state"]["leader"]
        names = {number: number[:12] for number in self.containers("leader")}
        return next((number for number, name in names.items() if identity and name in identity), "")


@pytest.fixture(scope="module")
def compose(engine: Engine, image: str) -> Iterator[Compose]:
    """Nothing runs at first; nothing is left."""
    system = Compose(
        engine, "docker compose" if (engine.folder / "config" / "cli-plugins").exists() else "docker-compose"
    )
    yield system
    system("--profile", "ui", "--profile", "monitoring", "down", "--volumes", check=False)


def applied() -> set[str]:
    """The names of the example's pods."""
    texts = [path.read_text() for path in sorted(EXAMPLE.glob("*.yaml"))]
    objects = [each for text in texts for each in yaml.safe_load_all(text) if each]
    return {each["metadata"]["name"] for each in objects if each["kind"] == "Pod"}


def test_the_page_works_as_written(compose: Compose) -> None:
    """Each of its commands, one after the other; the first one is all that the README shows."""
    lines = commands(PAGE)
    assert lines[0] == "docker compose run --rm example"
    assert lines[0] in (ROOT / "README.md").read_text()
    if compose.words == ["docker-compose"]:
        lines = [each.replace("docker compose", "docker-compose").replace(" --wait", "") for each in lines]
    first, *others = lines
    placed = compose.shell(first)
    rows = {line.split()[0]: line.split()[3] for line in placed.splitlines() if len(line.split()) > 3}
    assert applied() <= rows.keys(), placed
    told = compose.shell("\n".join(others))
    assert "unhealthy" not in told
    assert compose("ps", "--quiet").split() == []


def test_redis_reads_as_its_page_shows(compose: Compose) -> None:
    """Every line of docs/redis.md, by the published port."""
    compose.up()
    compose.dsched("apply -f examples/01-first-cluster")
    compose.dsched("wait --for settled")
    folder = embedded.find_program().path.parent
    path = f'export PATH="$PATH":{shlex.quote(str(folder))} DSCHED_REDIS_URL=redis://127.0.0.1:6379/0'
    compose.shell("\n".join([path, *commands(ROOT / "docs" / "redis.md")]))
    compose("down")


def test_building_again_leaves_nothing_dangling(compose: Compose) -> None:
    def dangling() -> set[str]:
        return set(compose.engine.output("docker", "images", "--quiet", "--filter", "dangling=true").split())

    before = dangling()  # stages of a builder without BuildKit
    compose("build")
    assert dangling() <= before


def pod(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "10m"}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


def test_it_outlives_the_loss_of_its_parts(compose: Compose, tmp_path: Path) -> None:
    """Leader and Redis killed while pods arrive, more evaluators, down and up: every pod is bound, to one node."""
    compose.up()
    compose.dsched("apply -f examples/01-first-cluster")
    compose.dsched("wait --for settled")
    before = {name: node for name, node in compose.pods().items() if node}
    assert len(before) > 40

    def more(name: str, count: int = 100) -> None:
        manifest = tmp_path / f"{name}.json"
        items = [pod(f"{name}-{number}") for number in range(count)]
        manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        compose.dsched(f"apply -f {shlex.quote(str(manifest))}")

    def all_bound(name: str) -> Callable[[], bool]:
        return lambda: sum(bool(node) for each, node in compose.pods().items() if each.startswith(f"{name}-")) == 100

    compose.up("--scale", "evaluator=4")
    assert len(compose.containers("evaluator")) == 4
    more("scaled")
    wait_until("the pods are bound", all_bound("scaled"), 60.0)

    leading = compose.leader()
    assert leading
    more("orphaned")
    compose.engine.output("docker", "kill", leading)
    wait_until("the other one leads", lambda: compose.leader() not in ("", leading), 60.0)
    wait_until("the pods are bound", all_bound("orphaned"), 60.0)

    (redis,) = compose.containers("redis")
    compose.engine.output("docker", "kill", redis)
    compose.up("--scale", "evaluator=4")
    more("restored")
    wait_until("the pods are bound", all_bound("restored"), 120.0)

    compose("down")
    compose.up()
    after = compose.pods()
    assert {name: after[name] for name in before} == before
    assert sum(bool(node) for name, node in after.items() if name not in before) == 300
    compose.dsched("fsck")


def test_a_process_that_hangs_is_unhealthy(compose: Compose) -> None:
    compose.up()
    leader = compose.containers("leader")[0]

    def status() -> str:
        return compose.engine.output("docker", "inspect", "--format", "{{.State.Health.Status}}", leader).strip()

    def signal(name: str) -> None:
        """To the child of the container's first process, which is Docker's own init."""
        compose.engine.output("docker", "exec", leader, "bash", "-c", f"kill -{name} $(cat /proc/1/task/1/children)")

    signal("STOP")
    wait_until("it is noticed", lambda: status() == "unhealthy", 120.0)
    signal("CONT")
    wait_until("it is well again", lambda: status() == "healthy", 120.0)


def test_monitoring_reaches_every_process(compose: Compose) -> None:
    compose.up()
    compose("--profile", "monitoring", "up", "--detach", "prometheus")
    base = "http://127.0.0.1:9090/api/v1"

    def ask(path: str) -> Any:
        return json.loads(compose.shell(f"curl --silent --fail {shlex.quote(f'{base}/{path}')}"))["data"]

    def up() -> bool:
        query = urllib.parse.quote("sum(up)")
        try:
            found = ask(f"query?query={query}")["result"]
        except AssertionError:  # it is starting
            return False
        return bool(found) and float(found[0]["value"][1]) >= 6

    wait_until("every process is a target that is up", up, 120.0)
    groups = ask("rules")["groups"]
    assert sum(len(group["rules"]) for group in groups) > 5
