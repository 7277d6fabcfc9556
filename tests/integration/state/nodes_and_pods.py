"""Nodes and pods for sequences: few names, and all that a table has columns for."""

from hypothesis import strategies as st

from tests.builders import make_node, make_pod
from tests.integration.state.tables import ASKED

NODE_NAMES = st.sampled_from([f"n{number}" for number in range(3)])
POD_NAMES = st.sampled_from([f"p{number}" for number in range(3)])
NODES = st.builds(
    make_node,
    NODE_NAMES,
    cpu=st.sampled_from(["2", "4", "3500m"]),
    pods=st.integers(0, 3),
    allocatable=st.sampled_from([{}, {"nvidia.com/gpu": 2}, {"example.com/thing": "7"}]),
    labels=st.dictionaries(st.sampled_from(ASKED[:2]), st.sampled_from("ab")),
    taints=st.lists(st.sampled_from(["a=b:NoSchedule", "c:NoExecute"]), unique=True),
    unschedulable=st.booleans(),
    images=st.dictionaries(st.sampled_from(["nginx", "redis"]), st.sampled_from([10**7, 10**8])),
)
PODS = st.builds(
    lambda name, **how: make_pod(f"ns/{name}", **how),
    POD_NAMES,
    cpu=st.sampled_from([None, "1", "250m", 2]),
    memory=st.sampled_from([None, "1Gi"]),
    requests=st.sampled_from([{}, {"nvidia.com/gpu": 1}]),
    ports=st.lists(st.sampled_from([80, "80/UDP", "127.0.0.1:80"]), unique=True),
    labels=st.dictionaries(st.just("app"), st.sampled_from("ab")),
    node=st.just(""),
)
