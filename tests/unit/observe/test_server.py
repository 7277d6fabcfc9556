"""The pages, over real HTTP."""

import socket
import urllib.error
import urllib.request

import pytest
from prometheus_client import CollectorRegistry, Counter

from dsched.errors import DschedError
from dsched.observe.address import address
from dsched.observe.exposition import Exposition
from dsched.observe.health import Check
from dsched.observe.server import Answer, Server


class Reason:
    """Why something is not well, as a test says."""

    def __init__(self):
        self.text = ""

    def __call__(self):
        return self.text


def broken():
    raise ValueError("nobody knows")


@pytest.fixture
def stuck():
    return Reason()


@pytest.fixture
def server(stuck):
    registry = CollectorRegistry()
    Counter("dsched_batches", "-", registry=registry).inc(3)
    checks = {"livez": [Check("loop", stuck)], "readyz": [Check("leader", Reason())]}
    made = Server("127.0.0.1", 0, Exposition("leader", [registry], others=True), checks)
    made.start()
    yield made
    made.close()


def ask(server, path, **headers):
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read().decode()


def test_metrics_are_text_that_prometheus_reads(server):
    status, kind, text = ask(server, "/metrics")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert "dsched_batches_total 3.0\n" in text


def test_metrics_are_openmetrics_for_who_asks_for_it(server):
    _, kind, text = ask(server, "/metrics", Accept="application/openmetrics-text;version=1.0.0")
    assert kind.startswith("application/openmetrics-text")
    assert text.endswith("# EOF\n")


def test_ok_is_all_that_is_said_of_what_is_well(server):
    assert ask(server, "/livez")[::2] == (200, "ok")
    assert ask(server, "/readyz")[::2] == (200, "ok")
    assert ask(server, "/healthz")[::2] == (200, "ok")


def test_a_check_that_fails_is_told_on_its_page_and_in_healthz(server, stuck):
    stuck.text = "nothing has moved for 61 s"
    told = "[-]loop failed: nothing has moved for 61 s\n"
    assert ask(server, "/livez")[::2] == (500, f"{told}livez check failed\n")
    assert ask(server, "/healthz")[::2] == (500, f"{told}[+]leader ok\nhealthz check failed\n")
    assert ask(server, "/readyz")[0] == 200


def test_verbose_tells_of_what_is_well_too(server):
    assert ask(server, "/healthz?verbose")[2] == "[+]loop ok\n[+]leader ok\nhealthz check passed\n"


def test_other_pages_are_not_there_and_say_which_are(server):
    assert ask(server, "/")[::2] == (404, "not here; there are /metrics /livez /readyz /healthz\n")


def test_further_pages_are_served_by_name_with_their_headers():
    def told(accept):
        return Answer("text/x-told", accept.encode(), 203, {"Warning": "299"})

    server = Server("127.0.0.1", 0, Exposition("leader", []), {}, {"told": told})
    server.start()
    try:
        assert ask(server, "/told/?x=1", Accept="a/b") == (203, "text/x-told", "a/b")
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/told", timeout=60) as answer:
            assert answer.headers["Warning"] == "299"
        assert ask(server, "/")[2] == "not here; there are /metrics /healthz /told\n"
    finally:
        server.close()


def test_a_check_that_breaks_has_failed():
    server = Server("127.0.0.1", 0, Exposition("leader", []), {"livez": [Check("loop", broken)]})
    server.start()
    try:
        status, _, text = ask(server, "/livez")
    finally:
        server.close()
    assert status == 500
    assert "the check itself broke: ValueError('nobody knows')" in text


def test_a_port_that_is_taken_is_told_with_what_to_do(server):
    with pytest.raises(DschedError, match=rf"127\.0\.0\.1 port {server.port} .*--metrics-port or DSCHED_METRICS_PORT"):
        Server("127.0.0.1", server.port, Exposition("leader", []), {})


def test_nothing_listens_after_it_is_closed(stuck):
    server = Server("127.0.0.1", 0, Exposition("leader", []), {})
    port = server.port
    server.close()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, None),
        ({"DSCHED_METRICS_PORT": ""}, None),
        ({"DSCHED_METRICS_PORT": "9100"}, ("127.0.0.1", 9100)),
        ({"DSCHED_METRICS_PORT": "0", "DSCHED_METRICS_HOST": "::1"}, ("::1", 0)),
        ({"DSCHED_METRICS_PORT": "9100", "DSCHED_METRICS_HOST": ""}, ("127.0.0.1", 9100)),
    ],
)
def test_the_environment_says_where(environ, expected):
    assert address(environ) == expected


@pytest.mark.parametrize("text", ["-1", "65536", "http", "9100.5"])
def test_what_is_no_port_is_refused(text):
    with pytest.raises(DschedError, match="is no port"):
        address({"DSCHED_METRICS_PORT": text})
