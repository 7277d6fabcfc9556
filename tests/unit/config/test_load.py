import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched import config
from dsched.errors import ConfigError
from tests.unit.config.files import file, plugin_sets, with_args

EVERYTHING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 4
percentageOfNodesToScore: 50
delayCacheUntilActive: on
clientConnection: {qps: 0.1, kubeconfig: /etc/kubeconfig}
leaderElection: {leaseDuration: 1m30s, renewDeadline: 1m, retryPeriod: 500ms}
extenders:
- urlPrefix: http://127.0.0.1:8888/
  filterVerb: filter
  ignorable: true
  managedResources: [{name: example.com/gpu, ignoredByScheduler: true}, {name: example.com/nic}]
- urlPrefix: https://x.example
  prioritizeVerb: prioritize
  weight: 5
  httpTimeout: 100ms
  enableHTTPS: yes
  tlsConfig: {serverName: x, caData: aGk=}
profiles:
- schedulerName: batch
  percentageOfNodesToScore: 0
  pluginConfig:
  - name: NodeResourcesFit
    args:
      ignoredResources: [example.com/foo]
      ignoredResourceGroups: [example.org]
      scoringStrategy:
        type: RequestedToCapacityRatio
        resources: [{name: cpu, weight: 3}]
        requestedToCapacityRatio: {shape: [{utilization: 0, score: 10}, {utilization: 100}]}
  - name: NodeAffinity
    args: {addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints: [{maxSkew: 2, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
  - {name: Mine, args: {depth: 3}}
  - {name: Odd, args: 5}
- schedulerName: plain
"""


def test_records():
    loaded = config.load(EVERYTHING, "everything.yaml")
    assert (loaded.parallelism, loaded.percentage_of_nodes_to_score, loaded.delay_cache_until_active) == (4, 50, True)
    assert (loaded.client_connection.qps, loaded.client_connection.burst) == (0.1, 100)
    election = loaded.leader_election
    assert (election.lease_duration_seconds, election.renew_deadline_seconds) == (90, 60)
    assert election.retry_period_seconds == 0.5
    assert loaded.profile("nobody") is None
    assert (loaded.enables("NodeResourcesFit"), loaded.enables("nobody")) == (True, False)
    batch = loaded.profile("batch")
    assert batch is not None
    assert batch.effective_percentage(loaded) == 0
    assert batch.args["NodeResourcesFit"] == config.NodeResourcesFitArgs(
        ignored_resources=("example.com/gpu",),  # the extenders' take the place of the file's
        ignored_resource_groups=("example.org",),
        scoring_strategy=config.ScoringStrategy(
            type="RequestedToCapacityRatio",
            resources=(config.ResourceSpec("cpu", 3),),
            shape=(config.ShapePoint(0, 10), config.ShapePoint(100, 0)),
        ),
    )
    assert batch.args["NodeAffinity"] == config.NodeAffinityArgs(
        {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
    )
    assert batch.args["PodTopologySpread"] == config.PodTopologySpreadArgs(
        ({"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"},), "List"
    )
    assert (batch.args["Mine"], batch.args["Odd"]) == ({"depth": 3}, {"args": 5})


def test_extenders_stand_in_calling_order():
    strict, lenient = config.load(EVERYTHING).extenders
    assert (strict.url_prefix, strict.weight, strict.http_timeout_seconds) == ("https://x.example", 5, 0.1)
    assert strict.tls is not None
    assert (strict.enable_https, strict.tls.server_name, strict.tls.ca_data) == (True, "x", "aGk=")
    assert (lenient.ignorable, lenient.http_timeout_seconds, lenient.tls) == (True, 5.0, None)
    assert [resource.ignored_by_scheduler for resource in lenient.managed_resources] == [True, False]


def test_default_arguments():
    (profile,) = config.default().profiles
    resources = (config.ResourceSpec("cpu", 1), config.ResourceSpec("memory", 1))
    assert profile.args == {
        "DefaultPreemption": config.DefaultPreemptionArgs(10, 100),
        "InterPodAffinity": config.InterPodAffinityArgs(1, False),
        "NodeAffinity": config.NodeAffinityArgs(None),
        "NodeResourcesBalancedAllocation": config.NodeResourcesBalancedAllocationArgs(resources),
        "NodeResourcesFit": config.NodeResourcesFitArgs((), (), config.ScoringStrategy("LeastAllocated", resources)),
        "PodTopologySpread": config.PodTopologySpreadArgs((), "System"),
        "VolumeBinding": config.VolumeBindingArgs(600),
    }


def test_dynamic_resources_arguments_are_taken():
    (profile,) = config.load(with_args("DynamicResources", filterTimeout="1.5s")).profiles
    assert profile.args["DynamicResources"] == config.DynamicResourcesArgs(1.5)


def test_the_completed_form_loads_as_itself():
    loaded = config.load(EVERYTHING)
    again = config.load(json.dumps(config.completed(loaded)))
    assert config.completed(again) == config.completed(loaded)
    assert (again.profiles, again.hash) == (loaded.profiles, loaded.hash)


def test_the_completed_form_is_v1():
    shown = config.completed(config.load(EVERYTHING))
    assert shown["leaderElection"]["leaseDuration"] == "1m30s"
    assert shown["extenders"][0] == {
        "urlPrefix": "http://127.0.0.1:8888/",
        "httpTimeout": "0s",
        "filterVerb": "filter",
        "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}, {"name": "example.com/nic"}],
        "ignorable": True,
    }
    assert shown["profiles"][0]["percentageOfNodesToScore"] == 0
    assert "percentageOfNodesToScore" not in shown["profiles"][1]


def test_the_hash_tells_configurations_apart_by_what_they_mean():
    plain = config.load(file()).hash
    assert (len(plain), plain) == (12, config.default().hash)
    assert config.load(file(parallelism=16, profiles=[{}])).hash == plain
    assert config.load(file(parallelism=17)).hash != plain
    # Shown alike, but one looks at every node and the other at as many as upstream would.
    assert config.load(file(percentageOfNodesToScore=0)).hash != plain


def test_the_completed_form_is_there_even_if_a_profile_cannot_be_built():
    text = file(parallelism=3, profiles=[{"plugins": plugin_sets(filter={"enabled": ["Nope"]})}])
    assert config.completed_document(text)["parallelism"] == 3
    with pytest.raises(ConfigError, match=r"broken\.yaml: creating profile for scheduler name default-scheduler: "):
        config.load(text, "broken.yaml")


@given(st.one_of(st.text(), st.binary()))
def test_any_text_is_refused_with_an_error_of_ours(text: str | bytes):
    with pytest.raises(ConfigError):
        config.load(text)


@given(
    st.dictionaries(
        st.sampled_from(["parallelism", "profiles", "extenders", "leaderElection", "clientConnection", "other"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=2)
                | st.dictionaries(st.sampled_from(["plugins", "pluginConfig", "name", "args", "score", "qps"]), inner)
            ),
            max_leaves=6,
        ),
    )
)
def test_any_shape_is_taken_or_refused_with_an_error_of_ours(fields: dict[str, object]):
    try:
        loaded = config.load(file(**fields))
    except ConfigError as error:
        assert error.errors
    else:
        assert loaded.profiles


def test_configurations_of_the_other_families_load(shared: Path):
    loaded = 0
    for vectors in sorted((shared / "conformance").glob("*.jsonl.gz")):
        with gzip.open(vectors, "rt") as lines:
            for line in lines:
                case = json.loads(line)["case"]
                if "config" in case:
                    config.load(json.dumps(case["config"]), case["name"])
                    loaded += 1
    assert loaded > 0
