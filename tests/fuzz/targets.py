"""What reads what comes from outside: takes any bytes, and raises nothing but what is promised."""

import atexit
import contextlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from dsched import config
from dsched.engine import replica_delta
from dsched.errors import ConfigError, ManifestError, QuantityError
from dsched.manifests import load
from dsched.model import messages, quantity
from dsched.model.messages import BindRequest, EvaluateShard, ShardResult

_FOLDER = Path(tempfile.mkdtemp(prefix="dsched-fuzz-"))
atexit.register(shutil.rmtree, _FOLDER, ignore_errors=True)


def manifest(content: bytes) -> None:
    """A file of objects."""
    for name in ("fuzz.yaml", "fuzz.json"):
        path = _FOLDER / name
        path.write_bytes(content)
        with contextlib.suppress(ManifestError):
            load.load([str(path)])


def configuration(content: bytes) -> None:
    """A KubeSchedulerConfiguration."""
    with contextlib.suppress(ConfigError):
        config.load(content)


def amount(content: bytes) -> None:
    """A quantity."""
    with contextlib.suppress(QuantityError):
        assert isinstance(quantity.nano(content.decode(errors="replace")), int)


def message(content: bytes) -> None:
    """What travels between processes, and what a replica of the node table is built from."""
    for kind in (EvaluateShard, ShardResult, BindRequest):
        with contextlib.suppress(msgspec.MsgspecError):
            messages.decode(content, kind)
    with contextlib.suppress(msgspec.MsgspecError):
        replica_delta.decode(content)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "manifest": manifest,
    "configuration": configuration,
    "amount": amount,
    "message": message,
}
SEEDS: dict[str, list[bytes]] = {
    "manifest": [
        b"apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"
        b"spec: {containers: [{name: m, resources: {requests: {cpu: 1}}}]}\n",
        b'{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4"}}}',
        b"a: &a [1, 2]\nb: [*a, *a]\n---\nkind: List\nitems: []\n",
    ],
    "configuration": [
        b"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        b"profiles: [{schedulerName: a, plugins: {multiPoint: {enabled: [{name: NodeName, weight: 2}]}}}]\n",
    ],
    "amount": [b"1.5Gi", b"100m", b"-3e7", b"12E", b"0.000001n"],
    "message": [
        messages.encode(BindRequest(epoch=1, config="h", profile="p", pods=[], cluster="standalone")),
        b"\x93\x01\x02\x03",
    ],
}
