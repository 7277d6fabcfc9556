import pytest

from tests.unit.config.files import file, paths, refusal, with_args

YAML_HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.mark.parametrize(
    "text",
    [
        file(),
        file(parallelism=None, profiles=None, leaderElection=None, extenders=None),
        file(profiles=[{"plugins": {"score": None}, "pluginConfig": None}]),
        file(profiles=[{"pluginConfig": [{"name": "NodeAffinity"}, {"name": "VolumeBinding", "args": None}]}]),
        file(profiles=[{"pluginConfig": [{"name": "Mine", "args": [1, "x", {"a": {"b": None}}]}]}]),
        file(clientConnection={"qps": 0.1}),
        file(delayCacheUntilActive=True),
        with_args("NodeResourcesFit", kind="NodeResourcesFitArgs", apiVersion="kubescheduler.config.k8s.io/v1"),
        with_args("NodeResourcesFit", apiVersion="kubescheduler.config.k8s.io/"),
        with_args("DynamicResources", filterTimeout="1m"),
        with_args("DynamicResources", filterTimeout=None),
        # YAML writes whole numbers in many ways, JSON in one.
        f"{YAML_HEAD}parallelism: 16.0\n",
        f"{YAML_HEAD}parallelism: 0x10\n",
        f"{YAML_HEAD}enableProfiling: yes\n",
        'apiVersion: kubescheduler.config.k8s.io/v1\n"kind": KubeSchedulerConfiguration\n---\nnot: read\n',
    ],
)
def test_texts_that_decode(text: str):
    assert paths(text) == []


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("", "document"),
        ("just text", "document"),
        ("[]", "document"),
        ('{"apiVersion": ', "document"),
        ("{}", "kind"),
        ('{"kind": "KubeSchedulerConfiguration"}', "apiVersion"),
        (file(apiVersion="kubescheduler.config.k8s.io/v1beta3"), "apiVersion"),
        (file(apiVersion="v1"), "apiVersion"),
        (file(apiVersion=1), "apiVersion"),
        (file(kind="Pod"), "kind"),
        (file(kind="kubeschedulerconfiguration"), "kind"),
        (file(kind="NodeResourcesFitArgs"), "kind"),
        (file(kind=None), "kind"),
        (file(Parallelism=1), "Parallelism"),
        (file(healthzBindAddress="0.0.0.0:10251"), "healthzBindAddress"),
        (file(metricsBindAddress="0.0.0.0:10251"), "metricsBindAddress"),
        (file(parallelism="16"), "parallelism"),
        (file(parallelism=True), "parallelism"),
        (file(parallelism=1.5), "parallelism"),
        (file().replace("}", ', "parallelism": 16.0}'), "parallelism"),
        (file().replace("}", ', "parallelism": 1e1}'), "parallelism"),
        (file(parallelism=2**31), "parallelism"),
        (file(podMaxBackoffSeconds=2**63), "podMaxBackoffSeconds"),
        (file(enableProfiling="true"), "enableProfiling"),
        (file(enableProfiling=1), "enableProfiling"),
        (file(clientConnection={"qps": 1e39}), "clientConnection.qps"),
        (file(clientConnection={"qps": "50"}), "clientConnection.qps"),
        (file(clientConnection=[]), "clientConnection"),
        (file(leaderElection={"leaseDuration": "15"}), "leaderElection.leaseDuration"),
        (file(leaderElection={"leaseDuration": 15}), "leaderElection.leaseDuration"),
        (file(leaderElection={"leaseDuration": None}), "leaderElection.leaseDuration"),
        (file(leaderElection={"leaderElect": "true"}), "leaderElection.leaderElect"),
        (file(leaderElection={"x": 1}), "leaderElection.x"),
        (file(profiles={}), "profiles"),
        (file(profiles=[1]), "profiles[0]"),
        (file(profiles=[{"schedulerName": 5}]), "profiles[0].schedulerName"),
        (file(profiles=[{"plugins": {"score": {"enabled": {}}}}]), "profiles[0].plugins.score.enabled"),
        (file(profiles=[{"plugins": {"sort": {}}}]), "profiles[0].plugins.sort"),
        (file(extenders=[{"httpTimeout": "abc"}]), "extenders[0].httpTimeout"),
        (file(extenders=[{"tlsConfig": {"caData": "%"}}]), "extenders[0].tlsConfig.caData"),
        (
            f"{YAML_HEAD}parallelism: '16'",
            "parallelism",
        ),
        (f"{YAML_HEAD}kind: Pod", "document"),
    ],
)
def test_texts_that_do_not(text: str, at: str):
    assert paths(text) == ["decode", at]


@pytest.mark.parametrize(
    ("text", "below"),
    [
        (with_args("VolumeBinding", unknownField=1), "unknownField"),
        (with_args("VolumeBinding", kind="InterPodAffinityArgs"), "kind"),
        (with_args("VolumeBinding", kind="WrongArgs"), "kind"),
        (with_args("VolumeBinding", apiVersion="v1"), "apiVersion"),
        (with_args("VolumeBinding", bindTimeoutSeconds="600"), "bindTimeoutSeconds"),
        (with_args("DynamicResources", bindingTimeout="10s"), "bindingTimeout"),
        (with_args("NodeAffinity", addedAffinity={"x": 1}), "addedAffinity.x"),
        (
            with_args("PodTopologySpread", defaultConstraints=[{"labelSelector": {"matchLabels": {"a": 1}}}]),
            "defaultConstraints[0].labelSelector.matchLabels[a]",
        ),
        (with_args("NodeResourcesFit", ignoredResources=["a", 1]), "ignoredResources[1]"),
        (
            with_args("NodeResourcesFit", scoringStrategy={"resources": [1]}),
            "scoringStrategy.resources[0]",
        ),
    ],
)
def test_arguments_are_decoded_as_strictly(text: str, below: str):
    assert paths(text) == ["decode", f"profiles[0].pluginConfig[0].args.{below}"]


@pytest.mark.parametrize("args", ['""', '"x"', "5", "[]", "true"])
def test_arguments_have_to_be_an_object(args: str):
    text = file(profiles=[{"pluginConfig": [{"name": "NodeAffinity", "args": "HERE"}]}]).replace('"HERE"', args)
    assert paths(text) == ["decode", "profiles[0].pluginConfig[0].args"]


def test_a_repeated_field_is_refused_but_not_inside_arguments_of_plugins_out_of_tree():
    twice = '{"a": 1, "a": 2}'
    text = file(profiles=[{"pluginConfig": [{"name": "Mine", "args": "HERE"}]}])
    assert paths(text.replace('"HERE"', twice)) == []
    assert paths(text.replace("Mine", "NodeName").replace('"HERE"', twice)) == []
    assert paths(text.replace('"args"', '"args": {}, "args"')) == ["decode", "profiles[0].pluginConfig[0].args"]
    assert paths(file().replace("}", ', "parallelism": 3, "parallelism": 4}')) == ["decode", "parallelism"]


def test_all_that_is_wrong_is_told_at_once():
    text = file(parallelism="16", profile=[], profiles=[{"pluginConfig": [{"name": "NodeAffinity", "args": {"x": 1}}]}])
    assert paths(text) == ["decode", "parallelism", "profile", "profiles[0].pluginConfig[0].args.x"]


def test_the_message_says_where_what_was_found_and_what_was_expected():
    error = refusal(file(parallelism="16"), source="scheduler.yaml")
    assert error is not None
    assert str(error).startswith("scheduler.yaml: configuration refused (decode)\n")
    assert error.errors == ('parallelism: found string "16", expected a value of type int32',)


def test_deep_arguments_of_plugins_out_of_tree_are_refused():
    text = file(profiles=[{"pluginConfig": [{"name": "Mine", "args": "HERE"}]}])
    assert paths(text.replace('"HERE"', "[" * 150 + "]" * 150)) == ["decode", "profiles[0].pluginConfig[0].args"]
