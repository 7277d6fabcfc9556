"""What people type is the name of an object, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.cluster.kubernetes import resources
from dsched.cluster.kubernetes.access import Access
from dsched.cluster.kubernetes.http.connection import Connection
from dsched.cluster.kubernetes.http.exchange import Request

FORGED = "default/x HTTP/1.1\r\nHost: a\r\n\r\nDELETE /api/v1/namespaces/default/pods/victim"


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Connection:
    monkeypatch.setattr(Access, "authorization", lambda self: "Bearer t")
    return Connection(Access(), 1.0)


def test_a_name_cannot_hold_another_request(wire: Connection) -> None:
    packed = wire._packed(Request("GET", resources.POD.path(FORGED)))
    assert packed.count(b"HTTP/1.1\r\n") == 1
    assert packed.startswith(b"GET /api/v1/namespaces/default/pods/x%20HTTP%2F1.1%0D%0A")


@given(st.text(), st.text())
def test_a_path_has_as_many_parts_as_it_should(namespace: str, name: str) -> None:
    path = resources.POD.path(f"{namespace.replace('/', '')}/{name}")
    assert path.isascii()
    assert path.count("/") == 6
    assert not set(path) & set(" ?#\r\n")


@pytest.mark.parametrize("path", ["/api/v1/pods x", "/api\r\nHost: a", "/api/\u65e5"])
def test_a_path_that_would_end_the_line_is_refused(wire: Connection, path: str) -> None:
    with pytest.raises(ValueError, match="is no path of a request"):
        wire._packed(Request("GET", path))
