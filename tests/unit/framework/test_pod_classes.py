"""Which pods are of one class."""

from dsched.framework.pod_info import PodInfo
from tests.builders import make_pod

EPHEMERAL = {"volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]}


def test_pods_that_differ_in_name_and_uid_alone_are_one_class() -> None:
    assert PodInfo(make_pod("shop/a", cpu=1)).class_key == PodInfo(make_pod("shop/b", cpu=1)).class_key


def test_the_node_of_a_bound_pod_does_not_matter() -> None:
    assert PodInfo(make_pod("shop/a", node="n1")).class_key == PodInfo(make_pod("shop/a")).class_key


def test_namespace_labels_and_spec_do() -> None:
    keys = {
        PodInfo(make_pod("shop/a")).class_key,
        PodInfo(make_pod("farm/a")).class_key,
        PodInfo(make_pod("shop/a", labels={"app": "web"})).class_key,
        PodInfo(make_pod("shop/a", priority=1)).class_key,
    }
    assert len(keys) == 4


def test_the_claim_of_an_ephemeral_volume_is_named_after_its_pod() -> None:
    first, second = make_pod("shop/a", spec=EPHEMERAL), make_pod("shop/b", spec=EPHEMERAL)
    assert PodInfo(first).class_key != PodInfo(second).class_key


def test_the_token_that_an_api_server_gives_each_pod_does_not_matter() -> None:
    """The admission plugin ServiceAccount adds a volume whose name ends in five random letters."""
    first, second = (
        make_pod(f"shop/{name}", spec={"volumes": [{"name": f"kube-api-access-{name}", "projected": {"sources": []}}]})
        for name in ("x2x4f", "9bkzq")
    )
    assert PodInfo(first).class_key == PodInfo(second).class_key == PodInfo(make_pod("shop/a")).class_key


def test_volumes_that_scheduling_reads_do() -> None:
    claims = [
        {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]} for claim in ("one", "two")
    ]
    keys = {PodInfo(make_pod("shop/a", spec=spec)).class_key for spec in (*claims, {})}
    assert len(keys) == 3


def test_claims_may_be_left_unnamed() -> None:
    def of(claim: str) -> PodInfo:
        data = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
        return PodInfo(make_pod(f"shop/{claim}", spec={"volumes": [data, {"name": "x", "emptyDir": {}}]}))

    one, two = of("one"), of("two")
    assert (one.claim_names, two.claim_names) == (("one",), ("two",))
    assert one.unlabelled_key != two.unlabelled_key
    assert one.unclaimed_key == two.unclaimed_key != one.unlabelled_key
    assert one.keyed_by(["app"], claims=False) == two.keyed_by(["app"], claims=False) != one.keyed_by(["app"])
    assert one.unclaimed_key != PodInfo(make_pod("shop/a")).unclaimed_key


def test_a_pod_that_is_decided_for_itself_alone_names_its_claims() -> None:
    volumes = [*EPHEMERAL["volumes"], {"name": "data", "persistentVolumeClaim": {"claimName": "one"}}]
    alone = PodInfo(make_pod("shop/a", spec={"volumes": volumes}))
    assert alone.claim_names == ()
    assert b"one" in alone.unclaimed_key
