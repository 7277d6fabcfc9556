"""What the service accounts of deploy/kubernetes may do: all that is needed, and nothing else."""

import pytest
from kubernetes import client, config

from tests.e2e.apiserver import ApiServer
from tests.e2e.deployment import NAMESPACE, Deployment

LEADER, BINDER, EVALUATOR = "dsched-leader", "dsched-binder", "dsched-evaluator"
OFFERED = ("resourceslices", "deviceclasses", "devicetaintrules")

# Verbs and GROUP/RESOURCE; one a line and account.
MAY = {
    LEADER: [
        *(("get list watch", resource) for resource in ("/pods", "/nodes")),
        *(("list watch", resource) for resource in ("/namespaces", "/services", "/replicationcontrollers")),
        *(("list watch", f"apps/{resource}") for resource in ("replicasets", "statefulsets")),
        ("list watch", "policy/poddisruptionbudgets"),
        *(("list watch", resource) for resource in ("/persistentvolumes", "/persistentvolumeclaims")),
        *(("list watch", f"storage.k8s.io/{each}") for each in ("storageclasses", "csinodes", "csidrivers")),
        *(("list watch", f"storage.k8s.io/{each}") for each in ("csistoragecapacities", "volumeattachments")),
        *(("list watch", f"resource.k8s.io/{each}") for each in OFFERED),
        ("get list watch update delete", "resource.k8s.io/resourceclaims"),
        ("update", "resource.k8s.io/resourceclaims/status"),
        ("update", "resource.k8s.io/resourceclaims/binding"),
        ("delete", "/pods"),
        ("patch", "/pods/status"),
        ("get list watch", "scheduling.k8s.io/podgroups"),
        ("patch", "scheduling.k8s.io/podgroups/status"),
        ("get list watch", "dsched.io/queues"),
        ("patch", "dsched.io/queues/status"),
        ("create patch", "events.k8s.io/events"),
    ],
    BINDER: [
        ("get", "/pods"),
        ("create", "/pods/binding"),
        ("get patch", "/persistentvolumes"),
        ("get patch", "/persistentvolumeclaims"),
        ("get", "/nodes"),
        ("get", "storage.k8s.io/csinodes"),
        ("get create update", "resource.k8s.io/resourceclaims"),
        ("update", "resource.k8s.io/resourceclaims/status"),
        ("update", "resource.k8s.io/resourceclaims/binding"),
        ("patch", "/pods/status"),
        ("create patch", "events.k8s.io/events"),
    ],
    EVALUATOR: [],
}
MAY_NOT = {
    LEADER: [
        ("create update patch deletecollection", "/pods"),
        ("update create delete", "/pods/status"),
        ("create", "/pods/binding"),
        ("create", "/pods/exec"),
        ("create", "/pods/eviction"),
        ("create update patch delete", "/nodes"),
        ("update patch", "/nodes/status"),
        ("create update patch delete", "/persistentvolumes"),
        ("create update patch delete", "/persistentvolumeclaims"),
        ("get create delete", "apps/replicasets"),
        ("get update patch", "storage.k8s.io/volumeattachments"),
        ("create patch", "resource.k8s.io/resourceclaims"),
        *(("create update patch delete", f"resource.k8s.io/{each}") for each in OFFERED),
        ("create update patch delete", "scheduling.k8s.io/podgroups"),
        ("update", "scheduling.k8s.io/podgroups/status"),
        ("create update patch delete", "dsched.io/queues"),
        ("update", "dsched.io/queues/status"),
        ("get list create", "coordination.k8s.io/leases"),
    ],
    BINDER: [
        ("list watch create update patch delete", "/pods"),
        ("create update", "/pods/status"),
        ("list watch patch delete", "resource.k8s.io/resourceclaims"),
        *(("get list watch update", f"resource.k8s.io/{each}") for each in OFFERED),
        ("list create update delete", "/persistentvolumes"),
        ("list create update delete", "/persistentvolumeclaims"),
        ("list watch update patch delete", "/nodes"),
    ],
    EVALUATOR: [("get list watch create", "/pods"), ("get list", "/nodes"), ("create", "/events")],
}
FOR_NOBODY = [
    ("get list watch create update delete", "/secrets"),
    ("get list create update", "/configmaps"),
    ("create", "/serviceaccounts/token"),
    ("impersonate", "/users"),
    ("create update bind escalate", "rbac.authorization.k8s.io/clusterroles"),
    ("create", "rbac.authorization.k8s.io/clusterrolebindings"),
    ("get list create update", "resource.k8s.io/resourceclaimtemplates"),
]


@pytest.fixture(scope="module")
def authorization(api_server: ApiServer, deployment: Deployment):
    with config.new_client_from_config(str(api_server.kubeconfig)) as api:
        yield client.AuthorizationV1Api(api)


def allowed(authorization: client.AuthorizationV1Api, account: str, verb: str, path: str, namespace: str = "") -> bool:
    """What the API server's authorizer says of a request."""
    group, _, resource = path.partition("/")
    resource, _, subresource = resource.partition("/")
    asked = {
        "verb": verb, "group": group, "resource": resource, "subresource": subresource, "namespace": namespace,
    }  # fmt: skip
    review = {
        "spec": {
            "user": f"system:serviceaccount:{NAMESPACE}:{account}",
            "groups": ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"],
            "resourceAttributes": asked,
        }
    }
    return bool(authorization.create_subject_access_review(review).status.allowed)


@pytest.mark.parametrize("account", [LEADER, BINDER, EVALUATOR])
def test_everything_needed_is_allowed(authorization: client.AuthorizationV1Api, account: str):
    refused = [
        f"{verb} {path}"
        for verbs, path in MAY[account]
        for verb in verbs.split()
        if not allowed(authorization, account, verb, path)
    ]
    assert refused == []


@pytest.mark.parametrize("account", [LEADER, BINDER, EVALUATOR])
def test_nothing_else_is_allowed(authorization: client.AuthorizationV1Api, account: str):
    granted = [
        f"{verb} {path} in {namespace or 'all namespaces'}"
        for verbs, path in MAY_NOT[account] + FOR_NOBODY
        for verb in verbs.split()
        for namespace in ("", NAMESPACE)
        if allowed(authorization, account, verb, path, namespace)
    ]
    assert granted == []


def test_a_token_is_as_good_as_its_account(api_server: ApiServer, deployment: Deployment):
    """The token itself, not an authorizer's opinion: what pods of the Deployments would present."""
    leader, binder = deployment.kubeconfig("leader"), deployment.kubeconfig("binder")
    assert '"items"' in api_server.kubectl("get", "nodes", "-o", "json", kubeconfig=leader)
    for kubeconfig, words in (
        (leader, ("get", "secrets", "-A")),
        (leader, ("delete", "node", "some")),
        (leader, ("run", "some", "--image=some", "-n", "default")),
        (binder, ("get", "nodes")),
        (binder, ("get", "pods", "-A")),
    ):
        with pytest.raises(AssertionError, match="Forbidden"):
            api_server.kubectl(*words, kubeconfig=kubeconfig)
