"""The chart deploy/helm/dsched as helm renders it, and the programs that it takes."""

import os
import subprocess
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "dsched"
VALUES = Path(__file__).parent / "values"
PRODUCTION = CHART / "production.yaml"
CASES = (*sorted(VALUES.glob("*.yaml")), PRODUCTION)
"""Files of values: each is rendered, and what comes out is judged by schemas and by an API server."""
RELEASE, NAMESPACE = "dsched", "dsched-system"
TOOLS = Path(__file__).parent / "tools" / "go.mod"
CLUSTER_WIDE = ("Namespace", "ClusterRole", "ClusterRoleBinding")

Json = dict[str, Any]


class NoHelm(Exception):
    """This machine has no helm."""


def folder() -> Path:
    """What ``DSCHED_TEST_HELM`` names, else what build-tools has left in its cache.

    Raises:
        NoHelm: there is no such folder, or no helm in it.
    """
    lines = TOOLS.read_text().splitlines()
    version = next(line.split()[1] for line in lines if line.strip().startswith("helm.sh/helm/v3 v"))
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    named = os.environ.get("DSCHED_TEST_HELM")
    found = Path(named) if named else caches / "dsched" / "helm" / version
    if not os.access(found / "helm", os.X_OK):
        raise NoHelm(f"{found} has no helm; run tests/chart/build-tools, or name its folder with DSCHED_TEST_HELM")
    return found


def helm(*words: str | Path) -> "subprocess.CompletedProcess[str]":
    """Run it, whatever comes of it.

    Raises:
        NoHelm: there is none.
    """
    # Without a cluster, and without what the caller may have set up.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HELM_", "KUBE"))}
    return subprocess.run(
        [folder() / "helm", *words], env=kept, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


def rendered(*values: Path) -> list[Json]:
    """The objects that helm makes with these files, in the namespace where it would put them."""
    named = [word for path in values for word in ("--values", path)]
    done = helm("template", RELEASE, CHART, "--namespace", NAMESPACE, *named)
    assert done.returncode == 0, done.stderr
    objects = [each for each in yaml.safe_load_all(done.stdout) if each]
    for each in objects:
        if each["kind"] not in CLUSTER_WIDE:
            each["metadata"].setdefault("namespace", NAMESPACE)
    return objects
