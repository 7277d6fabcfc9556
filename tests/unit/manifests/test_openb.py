"""The openb trace."""

from pathlib import Path

import pytest

from dsched.errors import ManifestError
from dsched.manifests import openb
from tests.manifests import loaded

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn-0,32000,262144,0,\nn-1,96000,393216,8,G2\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "late,6000,12288,1,460,V100M16|V100M32,LS,Running,427061,12902960,427061\n"
    "early,12000,16384,8,1000,,BE,Running,0,12537496,0\n"
)


def files(folder: Path, nodes: str = NODES, pods: str = PODS) -> tuple[Path, Path]:
    (folder / "nodes.csv").write_text(nodes)
    (folder / "pods.csv").write_text(pods)
    return folder / "nodes.csv", folder / "pods.csv"


def test_nodes(tmp_path: Path):
    (plain, gpu), _ = openb.read(*files(tmp_path))
    assert plain["metadata"]["labels"] == {"kubernetes.io/hostname": "n-0"}
    assert gpu["metadata"]["labels"] == {"kubernetes.io/hostname": "n-1", "gpu-model": "G2"}
    assert gpu["status"]["allocatable"] == {
        "cpu": "96000m",
        "memory": "393216Mi",
        "pods": "110",
        "example.com/gpu-milli": "8000",
    }


def test_pods_come_in_the_order_of_their_creation(tmp_path: Path):
    _, pods = openb.read(*files(tmp_path))
    assert [pod["metadata"]["name"] for pod in pods] == ["early", "late"]


def test_requests_priority_and_affinity(tmp_path: Path):
    _, (early, late) = openb.read(*files(tmp_path))
    resources = late["spec"]["containers"][0]["resources"]
    assert resources["requests"] == {"cpu": "6000m", "memory": "12288Mi", "example.com/gpu-milli": "460"}
    assert resources["limits"] == {"example.com/gpu-milli": "460"}
    # 8 devices of 1000 each
    assert early["spec"]["containers"][0]["resources"]["limits"] == {"example.com/gpu-milli": "8000"}
    assert (early["spec"]["priority"], late["spec"]["priority"]) == (0, 1000)
    required = late["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required["nodeSelectorTerms"] == [
        {"matchExpressions": [{"key": "gpu-model", "operator": "In", "values": ["V100M16", "V100M32"]}]}
    ]
    assert "affinity" not in early["spec"]


def test_what_it_makes_can_be_applied(tmp_path: Path):
    nodes, pods = openb.read(*files(tmp_path))
    assert [each.key for each in loaded(tmp_path, *nodes, *pods)] == ["n-0", "n-1", "default/early", "default/late"]


def test_problems_name_file_line_and_column(tmp_path: Path):
    nodes = NODES + "n_2,-5,1,0,\nn-3,1\n"
    pods = PODS + "p,1,1,0,0,,Best,Running,x,,\n"
    with pytest.raises(ManifestError) as error:
        openb.read(*files(tmp_path, nodes, pods))
    name, cpu, columns, time, qos = error.value.problems
    assert name.startswith(f'{tmp_path}/nodes.csv:4: sn: "n_2" is not a DNS subdomain')
    assert cpu == f'{tmp_path}/nodes.csv:4: cpu_milli: "-5" is not a whole number'
    assert columns == f"{tmp_path}/nodes.csv:5: does not have 5 columns"
    assert time == f'{tmp_path}/pods.csv:4: creation_time: "x" is not a whole number'
    assert qos == f'{tmp_path}/pods.csv:4: qos: "Best" is not one of BE, Burstable, LS, Guaranteed'


def test_a_missing_column_is_named(tmp_path: Path):
    with pytest.raises(ManifestError, match=r"nodes\.csv:1: there is no column gpu, model"):
        openb.read(*files(tmp_path, nodes="sn,cpu_milli,memory_mib\n"))


def test_the_whole_trace(shared: Path):
    folder = shared / "data" / "openb"
    nodes, pods = openb.read(folder / "openb_node_list_all_node.csv", folder / "openb_pod_list_default.csv")
    assert (len(nodes), len(pods)) == (1523, 8152)
