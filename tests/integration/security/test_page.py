"""The web page with the rights of a Redis user."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dsched.errors import NotAllowed
from dsched.state import client
from tests.integration.ui.conftest import NEVER_S, Page
from tests.manifests import apply, node_manifest, pod_manifest
from tests.redis_server import Guarded


@pytest.fixture
def page(guarded: Guarded, tmp_path: Path) -> Iterator[Page]:
    """A page that may only read, and is told to allow changes all the same."""
    operator = client.connect(guarded.url_of("operator"))
    apply(operator, tmp_path, node_manifest("page-node"), pod_manifest("page/web"))
    operator.close()
    viewer = client.connect(guarded.url_of("viewer"))
    served = Page(viewer, "127.0.0.1", NEVER_S, {"writes": True})
    yield served
    served.end()
    viewer.close()


def test_who_may_only_read_sees_everything_and_changes_nothing(page: Page) -> None:
    pod = "pods/page/web"
    for path in ("", "queues", "nodes", "nodes/page-node", pod, f"{pod}/explanation", "api/overview", "api/throughput"):
        answer = page.get(f"/{path}")
        assert answer.status_code == 200, (path, answer.text)
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: asked}\nspec: {containers: [{name: main, image: nginx}]}\n"
    assert page.post("/api/what-if", content=text).json()["counts"]["placed"] == 1
    key = {"x-dsched-key": page.get("/api/session").json()["key"]}
    refused = page.post("/api/pause", json={}, headers=key)
    assert refused.status_code == 403
    assert "does not allow its user to do this" in refused.json()["error"]["message"]
    assert NotAllowed.__name__ not in refused.text
