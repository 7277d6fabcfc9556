"""What `dsched apply` takes is what an API server takes, kept as it keeps it; what one refuses the other refuses.

The API server is asked about changed manifests without keeping them (``dryRun=All``). What is left out is named: what
no part of scheduling reads is not looked at here, and a few things are refused that an API server lets pass.
"""

import json
import random
import re
from http import HTTPStatus
from typing import Any

import msgspec

from dsched.errors import ManifestError
from dsched.framework.pod_info import PodInfo
from dsched.manifests import admission, exporting, kinds, load
from dsched.model import meta, quantity
from dsched.model.meta import ApiRecord
from dsched.model.pod import Pod
from tests import seeds
from tests.e2e.cluster import Cluster
from tests.e2e.sample_manifests import SAMPLES, changed

Json = dict[str, Any]

SEED = "DSCHED_MANIFESTS_SEED"
ASKED = 3000
SHOWN = 20

UNREAD = re.compile(
    r"""\.image\b | \bspec\.template\b | \bspec\.ports\b | reclaimPolicy
    | \.(iscsi|azureDisk|rbd|emptyDir|gcePersistentDisk|awsElasticBlockStore)\b | ^spec:\ .*must\ specify\ a\ volume
    | \.nodeID\b | topologyKeys | ^spec\.drivers\[\d+\]: | ^spec\.source:
    | priorityClassName\ of\ type | computed\ PreemptLowerPriority""",
    re.VERBOSE,
)
"""Fields that scheduling does not read, as the API server names them: images, templates, what only a kubelet needs of a
volume, or a driver of a node. And whether a pod's preemptionPolicy is its class's: standalone mode lets a pod have its
own."""
STRICTER = re.compile(
    r"""schedulerName: | status\.(capacity|allocatable)\..*is\ not\ a\ qualified\ name
    | spec\.resources\.requests\..*is\ not\ a\ qualified\ name | sizeBytes: | is\ beyond\ 64\ bits | ^…""",
    re.VERBOSE | re.DOTALL,
)
"""What is refused here although an API server takes it: names that nobody can have meant, and images below nothing."""
SET_BY_THE_SERVER = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")
ADDED = "node.kubernetes.io/"
"""Begins the keys of the tolerations that an API server gives each pod, for as long as its node may be lost."""


def test_the_samples_are_taken(cluster: Cluster) -> None:
    for sample in SAMPLES:
        answer = asked(cluster, sample)
        assert isinstance(answer, dict), f"{sample['kind']}: {answer}"
        assert difference(ours(sample), answer) == ""


def test_changed_manifests_are_taken_and_refused_alike(cluster: Cluster) -> None:
    seed = seeds.settled(SEED)
    differences: list[str] = []
    taken = 0
    for index in range(ASKED):
        manifest, places = changed(random.Random(f"{seed}-{index}"))
        found = ours(manifest)
        taken += isinstance(found, dict)
        if apart := difference(found, asked(cluster, manifest)):
            differences.append(f"{index} {manifest['kind']} {' '.join(places)}: {apart}")
    print(f"{SEED}={seed}: {taken} of {ASKED} taken")
    assert ASKED // 4 < taken < ASKED * 3 // 4
    assert not differences, f"{SEED}={seed}\n" + "\n".join(differences[:SHOWN])


def difference(found: Json | list[str], answer: Json | list[str]) -> str:
    """What is different between ours and the API server's; ``""`` for nothing."""
    if isinstance(answer, list) and isinstance(found, list):
        return ""
    if isinstance(answer, list):
        read = [field for field in answer if not UNREAD.search(field)]
        return f"the API server refuses {'; '.join(read)}" if read else ""
    if isinstance(found, list):
        looser = [problem for problem in found if not STRICTER.search(problem)]
        return f"refused only here: {'; '.join(looser)}" if looser else ""
    mine, theirs = _record(found), _record(answer)
    if isinstance(mine, Pod) and isinstance(theirs, Pod):
        demands = PodInfo(mine).demand, PodInfo(theirs).demand
        apart = [] if demands[0] == demands[1] else [f"needs {demands[0]}, of the API server {demands[1]}"]
        return "; ".join([*apart, *_apart(_bare(mine), _bare(theirs))])
    return "; ".join(_apart(mine, theirs))


def asked(cluster: Cluster, manifest: Json) -> Json | list[str]:
    """What the API server would keep; else the fields that it refuses, with the reason."""
    kind = kinds.BY_NAME[manifest["kind"]]
    group = kind.api_version if "/" in kind.api_version else ""
    path = f"/apis/{group}/" if group else "/api/v1/"
    path += f"namespaces/{manifest['metadata']['namespace']}/{kind.plural}" if kind.namespaced else kind.plural
    pool = cluster.api.rest_client.pool_manager
    url = f"{cluster.server.url}{path}?dryRun=All&fieldValidation=Ignore"
    answer = pool.request("POST", url, body=json.dumps(manifest), headers={"Content-Type": "application/json"})
    kept: Json = json.loads(answer.data)
    if answer.status == HTTPStatus.CREATED:
        return kept
    causes = kept.get("details", {}).get("causes") or [{"message": kept["message"]}]
    return [f"{cause.get('field', '')}: {cause['message']}" for cause in causes]


def ours(manifest: Json) -> Json | list[str]:
    """What `dsched apply` would keep; else what it says is wrong."""
    try:
        (taken,) = load.load_text(json.dumps(manifest).encode(), "manifest")
    except ManifestError as error:
        return list(error.problems)
    wrong: list[str] = []
    admission.admit(taken.kind, taken.value, None, admission.classes([], []), lambda path, what: wrong.append(path))
    return wrong or taken.value


def _record(value: Json) -> ApiRecord:
    """What scheduling reads of an object, without what only an API server sets."""
    kind = kinds.BY_NAME[value["kind"]]
    metadata = {name: item for name, item in value["metadata"].items() if name not in SET_BY_THE_SERVER}
    bare = {**value, "metadata": metadata}
    if kind is not kinds.NODE:
        bare.pop("status", None)
    return meta.from_builtins(bare, exporting.RECORDS[kind])


def _apart(mine: Any, theirs: Any, place: str = "") -> list[str]:
    if isinstance(mine, msgspec.Struct):
        return [
            each
            for name in mine.__struct_fields__
            for each in _apart(getattr(mine, name), getattr(theirs, name), f"{place}.{name}")
        ]
    if isinstance(mine, dict) and isinstance(theirs, dict):
        names = sorted(mine.keys() | theirs.keys())
        return [each for name in names for each in _apart(mine.get(name), theirs.get(name), f"{place}.{name}")]
    if place.endswith(".match_expressions"):  # one of mismatchLabelKeys that is given twice is in there twice
        mine, theirs = _distinct(mine), _distinct(theirs)
    if isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        pairs = zip(mine, theirs, strict=True)
        return [each for index, pair in enumerate(pairs) for each in _apart(*pair, f"{place}[{index}]")]
    return (
        []
        if mine == theirs or (mine in (None, []) and theirs in (None, [])) or _same_amount(mine, theirs)
        else [f"{place}: {mine!r}, of the API server {theirs!r}"]
    )


def _distinct(given: list[Any]) -> list[Any]:
    return [each for index, each in enumerate(given) if each not in given[:index]]


def _bare(pod: Pod) -> Pod:
    """A pod without the tolerations that an API server adds, and without requests and limits, which are compared as a
    sum: where they are given for the pod as a whole, an API server fills in what its containers come to."""
    spec = msgspec.to_builtins(pod.spec)
    spec.pop("resources", None)
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        container.pop("resources", None)
    spec["tolerations"] = [each for each in spec.get("tolerations", ()) if not each.get("key", "").startswith(ADDED)]
    return msgspec.structs.replace(pod, spec=msgspec.convert(spec, type(pod.spec)))


def _same_amount(mine: Any, theirs: Any) -> bool:
    try:
        return quantity.nano(mine) == quantity.nano(theirs)
    except (ValueError, TypeError):
        return False
