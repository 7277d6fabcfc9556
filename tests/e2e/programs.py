"""Where etcd, kube-apiserver and kubectl are on this machine."""

import os
from pathlib import Path

NAMES = ("etcd", "kube-apiserver", "kubectl")
FOLDER = Path(__file__).parent
BUILD = FOLDER / "build-assets"


class NoPrograms(Exception):
    """This machine has no API server to run."""


def folder() -> Path:
    """What ``KUBEBUILDER_ASSETS`` names, else what build-assets has left in its cache.

    Raises:
        NoPrograms: there is no such folder, or a program is missing in it.
    """
    named = os.environ.get("KUBEBUILDER_ASSETS")
    found = Path(named) if named else _cache()
    if missing := [name for name in NAMES if not os.access(found / name, os.X_OK)]:
        raise NoPrograms(
            f"{found} has no {', '.join(missing)}; run tests/e2e/build-assets, or name a folder that has them "
            "with KUBEBUILDER_ASSETS"
        )
    return found


def _cache() -> Path:
    """The folder that build-assets uses for the version that it builds."""
    lines = (FOLDER / "assets" / "go.mod").read_text().splitlines()
    version = next(line.split()[1] for line in lines if line.strip().startswith("k8s.io/kubernetes v"))
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return caches / "dsched" / "kubebuilder-assets" / version
