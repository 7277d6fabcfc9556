from dsched.cli.render import demo

ZONE = "topology.kubernetes.io/zone"


def node(name, zone):
    return {"metadata": {"name": name, "labels": {ZONE: zone}}}


def pod(name, app, place="", **more):
    spec = {"nodeName": place} if place else {}
    return {"metadata": {"name": name, "namespace": "default", "labels": {"app": app}}, "spec": spec, **more}


def failed(message):
    return {"conditions": [{"type": "PodScheduled", "status": "False", "message": message}]}


def test_pods_are_counted_by_node_and_app():
    nodes = [node("n2", "b"), node("n1", "a")]
    pods = [pod("web-1", "web", "n1"), pod("db-1", "db", "n1"), pod("web-2", "web", "n1"), pod("web-3", "web")]
    assert list(demo.placements(nodes, pods)) == [
        "NODE   ZONE   PODS   APPS",
        "n1     a      3      db 1, web 2",
        "n2     b      0",
    ]


def test_many_nodes_are_cut():
    lines = list(demo.placements([node(f"n{number}", "a") for number in range(50)], []))
    assert len(lines) == 1 + 40 + 1
    assert lines[-1] == "… and 10 more nodes"


def test_pods_without_a_node_come_with_the_reason():
    pods = [pod("web-1", "web", "n1"), pod("big", "big", status=failed("0/1 nodes are available: 1 Insufficient cpu."))]
    assert list(demo.without_node(pods)) == ["default/big", "    0/1 nodes are available: 1 Insufficient cpu."]


def test_a_gated_pod_names_its_gates():
    gated = pod("approval", "approval")
    gated["spec"]["schedulingGates"] = [{"name": "example.com/approval"}]
    assert demo.reason(gated) == "waits until its scheduling gates are removed: example.com/approval"


def test_a_pod_that_was_not_looked_at():
    assert demo.reason(pod("web-1", "web")) == "not decided yet"


def test_pace():
    # 55 pods in 0.5 s = 110 pods/s
    assert demo.pace(55, 60, 500) == (
        "55 of 60 pods bound in 0.50 s, from the first apply to the last bind: 110 pods/s"
    )
    assert demo.pace(0, 3, 0) == "none of 3 pods found a node"
