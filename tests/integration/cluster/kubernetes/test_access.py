"""Credentials: read by the official client from where it finds them, and read again when they change."""

import json
import shutil
import ssl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from kubernetes.config import incluster_config

from dsched.cluster.kubernetes import access as access_module
from dsched.cluster.kubernetes.access import Access
from dsched.cluster.kubernetes.http.client import Calls, ManyCalls, succeeded
from dsched.cluster.kubernetes.http.exchange import Answer, Request
from dsched.errors import ConfigError
from tests import tls_tunnel
from tests.acceptance import certificates
from tests.integration.cluster.kubernetes.fake_api import FakeApi
from tests.manifests import pod_manifest

PODS = Request("GET", "/api/v1/pods")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_module, "RENEW_S", 0.0)
    monkeypatch.setattr(access_module, "REFRESH_S", 0.0)


@pytest.fixture
def token(api: FakeApi, tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("one")
    api.tokens = {"one"}
    return path


def test_a_token_that_changed_is_read_again(api: FakeApi, token: Path) -> None:
    access = Access(api.kubeconfig(token))
    calls, many = Calls(access), ManyCalls(access)
    assert succeeded(calls.make(PODS, 5))
    token.write_text("two")
    api.tokens = {"two"}
    assert succeeded(calls.make(PODS, 5))
    token.write_text("three")
    api.tokens = {"three"}
    assert all(map(succeeded, many.make([PODS] * 30, 5)))
    calls.close()
    many.close()


def test_a_token_that_is_wrong_stays_refused(api: FakeApi, token: Path) -> None:
    api.tokens = {"another"}
    calls = Calls(Access(api.kubeconfig(token)))
    outcome = calls.make(PODS, 0.3)
    assert isinstance(outcome, Answer)
    assert outcome.status == 401
    calls.close()


def test_the_service_account_of_a_pod(
    api: FakeApi, token: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = tmp_path / "ca.crt"
    authority.write_text("not read: the fake server speaks plain HTTP")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(authority))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    access = Access()
    access.load()
    assert (access.secure, access.host, access.port) == (True, "127.0.0.1", 6443)
    assert access.authorization().lower() == "bearer one"
    token.write_text("two")
    access.renew()
    assert access.authorization().lower() == "bearer two"


def test_watches_and_binds_go_on_with_a_new_token(api: FakeApi, token: Path) -> None:
    from dsched.cluster.kubernetes.cluster import Kubernetes

    api.put("pods", pod_manifest())
    cluster = Kubernetes(Access(api.kubeconfig(token)))
    version = cluster.list().version
    token.write_text("two")
    api.tokens = {"two"}
    api.end_watches()
    api.put("pods", pod_manifest("default/late"))
    heard: list[str] = []
    while "default/late" not in heard:
        events, version = cluster.watch(version, 30)
        assert events
        heard += [event.key for event in events]
    cluster.close()


def test_certificates_are_read_once_and_again_when_they_change(api: FakeApi, tmp_path: Path) -> None:
    """By two dozen threads at once, as a new leader's."""
    old, new = certificates.make(tmp_path / "old"), certificates.make(tmp_path / "new")
    given = tmp_path / "given"
    shutil.copytree(tmp_path / "old", given)
    access = Access(kubeconfig(api, given / old.authority.name))
    port = urlsplit(api.url).port
    assert port is not None
    for made in (old, new):
        shutil.copytree(made.authority.parent, given, dirs_exist_ok=True)
        with tls_tunnel.opened(made, port) as access_port:
            access.load()
            access.port = access_port
            with ThreadPoolExecutor(24) as pool:
                opened = list(pool.map(access.open, [5.0] * 24))
            assert len({id(sock.context) for sock in opened if isinstance(sock, ssl.SSLSocket)}) == 1
            for sock in opened:
                sock.close()
            calls = Calls(access)
            assert succeeded(calls.make(PODS, 5))
            calls.close()


def kubeconfig(api: FakeApi, authority: Path) -> str:
    path = Path(api.kubeconfig())
    value = json.loads(path.read_text())
    value["clusters"][0]["cluster"] = {
        "server": api.url.replace("http:", "https:"),
        "certificate-authority": str(authority),
    }
    path.write_text(json.dumps(value))
    return str(path)


def test_no_credentials_are_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ConfigError, match=r"no access to a Kubernetes cluster: .*; name a kubeconfig file"):
        Access(str(tmp_path / "none")).load()


def test_an_unusual_proxy_is_a_clear_error(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("HTTP_PROXY", "socks5://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "socks5://127.0.0.1:1")
    with pytest.raises(ConfigError, match="only http:// proxies"):
        Access(api.kubeconfig()).open(1.0)
