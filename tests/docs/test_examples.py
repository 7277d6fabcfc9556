"""The commands of each example's README do what it says; those of 01 and 02 are run by the tests of pages and by
`tests.acceptance.test_gang`."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from dsched.supervisor import embedded
from tests.redis_server import free_port

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^ {4,}(\S.*)$", re.MULTILINE)
NOT_HERE = ("pip ", "kubectl ", "curl ")
"""Installing needs the network, a cluster is not there; `installed` and `tests/e2e` do that."""


def commands(example: Path) -> list[str]:
    """The lines that a reader would type, in order."""
    lines = INDENTED.findall(FENCED.sub("", (example / "README.md").read_text()))
    return [line for line in lines if not line.startswith(NOT_HERE)]


def installed(example: Path, folder: Path) -> Path:
    """A folder with the example's package, as an installer that needs no network leaves it."""
    project = tomllib.loads((example / "pyproject.toml").read_text())["project"]
    for module in example.glob("*.py"):
        shutil.copy(module, folder)
    metadata = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    metadata.mkdir()
    name, version = f"Name: {project['name']}", f"Version: {project['version']}"
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\n{name}\n{version}\n")
    offered = project["entry-points"]["dsched.plugins"]
    entries = "\n".join(f"{plugin} = {value}" for plugin, value in offered.items())
    (metadata / "entry_points.txt").write_text(f"[dsched.plugins]\n{entries}\n")
    return folder


class Reader:
    """Somebody who follows a README: dsched on PATH, a data folder and installed plugins of their own."""

    def __init__(self, folder: Path) -> None:
        self.site = folder / "site"
        self.site.mkdir()
        programs = [str(Path(sys.executable).parent), str(embedded.find_program().path.parent), os.environ["PATH"]]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("DSCHED_", "CELERY_"))}
        self.environment = {
            **kept,
            "PATH": os.pathsep.join(programs),
            "PYTHONPATH": os.pathsep.join(filter(None, (str(self.site), os.environ.get("PYTHONPATH")))),
            "DSCHED_DATA_DIR": str(folder / "data"),
            "TMPDIR": str(folder),
        }

    def shell(self, *script: str, check: bool = True) -> str:
        """What a script prints; what it has left running in the background is ended."""
        text = "\n".join(["set -euo pipefail", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT", *script])
        done = subprocess.run(
            ["timeout", "240", "bash", "-c", text],  # which ends what runs in the background as well
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not check or done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout

    def nodes(self) -> dict[str, str]:
        """Pod to its node, empty where it has none."""
        listed: Mapping[str, Any] = json.loads(self.shell("dsched get pods -A -o json"))
        return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in listed["items"]}


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """Nothing of what they have started runs when the test ends."""
    made = Reader(tmp_path)
    yield made
    made.shell("dsched down", check=False)


def test_each_example_is_in_the_list_has_a_readme_and_is_tested() -> None:
    listed = (EXAMPLES / "README.md").read_text()
    folders = sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir() and path.name[0].isdigit())
    assert [name[:2] for name in folders] == [f"{number:02}" for number in range(1, len(folders) + 1)]
    tests = [path for path in (ROOT / "tests").rglob("test_*.py") if "examples" in path.read_text()]
    for name in folders:
        assert f"]({name})" in listed
        assert (EXAMPLES / name / "README.md").exists()
        assert any(name in path.read_text() for path in tests), f"no test names {name}"


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("0*")), ids=lambda path: path.name)
def test_files_that_a_readme_names_are_there(example: Path) -> None:
    named = re.findall(r"examples/[\w./-]*\w", "\n".join(commands(example)))
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_03_a_filter_in_20_lines(reader: Reader) -> None:
    example = EXAMPLES / "03-filter"
    assert len((example / "team_nodes.py").read_text().splitlines()) <= 20
    installed(example, reader.site)
    *shown, last = commands(example)
    assert last == "dsched down"
    told = reader.shell(*shown)
    assert "belong to team search" in told
    found = reader.nodes()
    assert found["index-1"] == "search-1"
    assert sorted(found[f"web-{number}"] for number in (1, 2, 3)) == ["", "any-1", "any-1"]
    reader.shell(last)


def test_04_a_score_that_asks_an_outside_service(reader: Reader) -> None:
    example = EXAMPLES / "04-score-by-price"
    installed(example, reader.site)
    *shown, last = commands(example)
    assert last == "dsched down"
    assert shown[0].endswith("service.py &")
    port, config = str(free_port()), example / "scheduler.yaml"
    (reader.site / config.name).write_text(config.read_text().replace("8765", port))
    own = [line.replace(str(config.relative_to(ROOT)), str(reader.site / config.name)) for line in shown[1:]]
    assert own != shown[1:]
    answers = f"until (echo >/dev/tcp/127.0.0.1/{port}) 2>/dev/null; do sleep 0.1; done"
    reader.shell(shown[0].replace("&", f"{port} &"), answers, *own)
    found = reader.nodes()
    assert sorted(node.partition("-")[0] for name, node in found.items() if name.startswith("batch")) == ["north"] * 4
    reader.shell(last)


def test_05_beside_kube_scheduler(reader: Reader) -> None:
    """What needs no cluster; `tests.e2e.test_examples` has the rest."""
    example = EXAMPLES / "05-beside-kube-scheduler"
    assert "ok" in reader.shell(*commands(example))
    kustomization = yaml.safe_load((example / "kustomization.yaml").read_text())
    assert all((example / resource / "kustomization.yaml").exists() for resource in kustomization["resources"])
    profiles = {each["schedulerName"] for each in yaml.safe_load((example / "scheduler.yaml").read_text())["profiles"]}
    named = [
        each["spec"]["template"]["spec"].get("schedulerName", "default-scheduler")
        for each in yaml.safe_load_all((example / "deployments.yaml").read_text())
    ]
    assert [name in profiles for name in named] == [False, True]
    assert "default-scheduler" not in profiles


def test_06_replay_a_recording_with_another_configuration(reader: Reader) -> None:
    example = EXAMPLES / "06-replay-another-configuration"
    same, check, compare, as_json = commands(example)
    assert "10 decisions about 10 pods: all the same" in reader.shell(same)
    assert "ok" in reader.shell(check)
    assert "2  with a node only in the replay" in reader.shell(compare)
    found = json.loads(reader.shell(as_json))
    assert not found["equal"]
    moved = {each["pod"]: each for each in found["pods"]["moved"]}
    assert len(moved) == 6
    assert all(name.startswith("default/web-") and each["replayed"] for name, each in moved.items())


def test_what_was_recorded_for_06_is_what_its_manifests_say() -> None:
    example = EXAMPLES / "06-replay-another-configuration"
    applied = [
        each for name in ("early", "late") for each in yaml.safe_load_all((example / f"{name}.yaml").read_text())
    ]
    lines = [json.loads(line) for line in gzip.decompress((example / "monday.jsonl.gz").read_bytes()).splitlines()]
    for kind, what in (("Node", "node"), ("Pod", "pending")):
        names = {each["metadata"]["name"] for each in applied if each["kind"] == kind}
        assert names == {name_of(line) for line in lines if line["what"] == what}


def name_of(line: Mapping[str, Any]) -> str:
    """The name of the object that a line of a recording is about."""
    (told,) = [value for value in line.values() if isinstance(value, dict) and "metadata" in value]
    name: str = told["metadata"]["name"]
    return name


def test_07_gpus_by_claims(reader: Reader) -> None:
    *shown, delete, wait, look, fsck, down = commands(EXAMPLES / "07-gpus")
    told = reader.shell(*shown)
    assert "settled: 4 pods, 3 bound or finished, 1 not bound" in told
    assert "0/2 nodes are available: 2 cannot allocate all claims." in told
    assert reader.nodes() == {"training": "gpu-b", "tuning": "gpu-a", "notebook": "gpu-a", "too-many": ""}
    devices = {line.split()[-1]: line.split()[-2] for line in told.splitlines() if "allocated,reserved" in line}
    assert devices["tuning"] == "gpu.example.com/gpu-a/gpu-0,gpu.example.com/gpu-a/gpu-1"
    assert devices["notebook"] == "gpu.example.com/gpu-a/gpu-2"
    assert devices["training"].count("gpu.example.com/gpu-b/") == 2
    (given,) = [line for line in reader.shell(delete, wait, look).splitlines() if line.endswith("too-many")]
    assert given.count("gpu.example.com/gpu-b/") == 3
    assert reader.shell(fsck).startswith("clean: ")
    reader.shell(down)


def test_08_a_training_job_in_one_rack(reader: Reader) -> None:
    up, cluster, first, job, placed, *look, more, queue, describe, delete, again, _, fsck, down = commands(
        EXAMPLES / "08-training-in-one-rack"
    )
    reader.shell(up, cluster, first, job, placed, *look)
    nodes = reader.nodes()
    assert {node[0] for name, node in nodes.items() if name.startswith("train-")} == {"b"}
    told = reader.shell(more, queue, describe)
    assert "0/3 placements are available" in told
    assert {node for name, node in reader.nodes().items() if name.startswith("again-")} == {""}
    reader.shell(delete, again)
    assert {node[0] for name, node in reader.nodes().items() if name.startswith("again-")} == {"b"}
    assert reader.shell(fsck).startswith("clean: ")
    reader.shell(down)


def test_09_two_teams(reader: Reader, tmp_path: Path) -> None:
    (up, cluster, queues, page, record, first, placed, look, more, waited, again, pods, describe, *rest) = commands(
        EXAMPLES / "09-two-teams"
    )
    back, rehearse, replay, fsck, down, elsewhere, *devices, clean, end = rest
    assert page == "dsched ui"
    record, replay = (line.replace("two-teams.jsonl.gz", f"{tmp_path}/two-teams.jsonl.gz") for line in (record, replay))
    reader.shell(up, cluster, queues)
    port = free_port()
    read = f"import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:{port}/api/shares').read().decode())"

    def until(text: str) -> str:
        """What the page tells, once that is in it."""
        return f"until python -c \"{read}\" 2>/dev/null | grep -F '{text}'; do sleep 0.2; done"

    told = reader.shell(
        f"{page} --port {port} >/dev/null &",
        f"{record} 2> {tmp_path}/said & recording=$!",
        f"until grep -q '^recording into' {tmp_path}/said; do sleep 0.2; done",
        until('"name":"research"'),
        *(first, placed, until('"borrowed":12,"guaranteed":16,"limit":28'), look),
        *(more, waited, until('"reclaimed_pods":6'), again, pods, describe),
        *("echo SIMULATED", back, rehearse, until('"pending":12')),
        *("kill -TERM $recording", "wait $recording", "echo REPLAYED", replay),
    )
    told, simulated, replayed = re.split("SIMULATED|REPLAYED", told)
    nodes = reader.nodes()
    left = [name.partition("-")[0] for name, node in nodes.items() if node]
    assert (left.count("research"), left.count("production"), len(nodes)) == (8, 8, 22)
    assert "research" in told
    lines = [" ".join(line.split()) for line in simulated.splitlines()]
    assert "nvidia.com/gpu 16 24 24 24 28" in lines
    assert any(line.startswith("production 4 0 4 ") for line in lines)
    waits, _ = replayed.split("RESOURCE")
    counts = {words[0]: words for line in waits.splitlines() if (words := line.split())}
    assert "6 evicted as recorded, 2 with these queues, 2 of these came again" in replayed
    for_research, for_production = counts["research"], counts["production"]
    assert for_research[1:4] == ["20", "→", "16"]
    assert for_research[-6:] == ["6", "→", "2", "6", "→", "2"]
    assert (for_production[1], for_production[-4:]) == ("8", ["0", "→", "4", "0"])
    assert reader.shell(fsck).startswith("clean: ")
    reader.shell(down)
    gpus = "gpu.example.com.deviceclass.resource.k8s.io/devices"
    up, applied, placed, look, claims = devices
    said = f"production +1 +{gpus} +1 +4 +<none> +4 +4 +1 "
    written = f"until {look} | grep -E '{said}'; do sleep 0.2; done"
    told = reader.shell(elsewhere, up, applied, placed, written, look, claims, "echo CLEAN", clean, end)
    assert re.search(f"research +2 +{gpus} +1 +4 +4 +4 +4 +2 ", told)
    assert told.partition("CLEAN\n")[2].startswith("clean: ")
