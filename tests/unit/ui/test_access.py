"""Who may ask: names, tokens, sessions, and requests from other sites."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.clock import ManualClock
from dsched.errors import DschedError
from dsched.ui import access
from dsched.ui.access import Hosts, Sessions, hostname, loopback, same_origin
from dsched.ui.login import here


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.example.com", False),
        ("", False),
    ],
)
def test_what_only_this_machine_reaches(host, is_loopback):
    assert loopback(host) is is_loopback


@pytest.mark.parametrize("header", ["127.0.0.1:80", "127.0.0.1", "localhost:8484", "LOCALHOST", "[::1]:1", "10.1.2.3"])
def test_hosts_of_a_page_on_this_machine(header):
    assert Hosts.of("127.0.0.1", ()).takes(header)


@pytest.mark.parametrize(
    "header",
    ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8484", "", ":80", "localhost:x", "[::1"],
)
def test_hosts_that_are_refused(header):
    assert not Hosts.of("127.0.0.1", ()).takes(header)


def test_hosts_that_were_allowed():
    assert Hosts.of("127.0.0.1", ["Sched.Example"]).takes("sched.example:443")
    assert Hosts.of("sched.internal", ()).takes("sched.internal:8484")


@pytest.mark.parametrize(
    ("text", "name"),
    [("Proxy.Example:8443", "proxy.example"), ("[::1]:8443", "[::1]"), ("my_host", "my_host")],
)
def test_the_name_without_its_port(text, name):
    assert hostname(text) == name


@pytest.mark.parametrize("text", ["https://proxy.example", "proxy.example/path", "a b", "*.example", "bücher.example"])
def test_what_no_browser_asks_for_is_no_name(text):
    assert hostname(text) is None


@pytest.mark.parametrize(
    ("fetched_from", "mode", "destination", "is_embedded"),
    [
        ("cross-site", "navigate", "document", False),
        ("cross-site", "navigate", None, False),
        ("cross-site", "navigate", "iframe", True),
        ("same-site", "navigate", "frame", True),
        ("cross-site", "navigate", "object", True),
        ("cross-site", "no-cors", "image", True),
        ("cross-site", "no-cors", None, True),
        ("same-origin", "navigate", "iframe", False),
        ("none", "navigate", "document", False),
        (None, None, None, False),
    ],
)
def test_what_other_sites_pages_load(fetched_from, mode, destination, is_embedded):
    assert access.embedded(fetched_from, mode, destination) is is_embedded


@given(st.text())
def test_any_header_is_read_or_refused(header):
    name = hostname(header)
    assert name is None or name in header.lower()
    Hosts.of("127.0.0.1", ()).takes(header)


@pytest.mark.parametrize(
    ("origin", "fetched_from", "taken"),
    [
        (None, None, True),
        ("http://127.0.0.1:8484", "same-origin", True),
        ("https://127.0.0.1:8484", None, True),
        ("http://127.0.0.1:9999", None, False),
        ("http://evil.example", None, False),
        ("null", None, False),
        (None, "cross-site", False),
        (None, "same-site", False),
        ("http://127.0.0.1:8484", "cross-site", False),
    ],
)
def test_requests_from_other_sites(origin, fetched_from, taken):
    assert same_origin("127.0.0.1:8484", origin, fetched_from) is taken


def test_a_short_token_is_refused_and_not_told():
    with pytest.raises(DschedError, match="9 characters") as refused:
        access.checked_token("secretive\n", "token.txt")
    assert "secretive" not in str(refused.value)
    assert access.checked_token(" 0123456789abcdef\n", "token.txt") == "0123456789abcdef"


def test_secrets_are_compared_whole():
    assert access.same("ä€ token", "ä€ token")
    assert not access.same("token", "tokens")
    assert access.new_token() != access.new_token()


def test_sessions_end():
    clock = ManualClock()
    sessions = Sessions(clock)
    one, two = sessions.begin(), sessions.begin()
    assert sessions.knows(one)
    assert not sessions.knows(one + "x")
    sessions.end(two)
    assert not sessions.knows(two)
    clock.advance(access.SESSION_S + 1)
    assert not sessions.knows(one)


def test_there_are_only_so_many_sessions(monkeypatch):
    monkeypatch.setattr(access, "MOST_SESSIONS", 2)
    sessions = Sessions(ManualClock())
    first, *others = [sessions.begin() for _ in range(3)]
    assert not sessions.knows(first)
    assert all(sessions.knows(each) for each in others)


def test_form_keys_belong_to_a_session_and_a_process():
    sessions = Sessions(ManualClock())
    assert sessions.form_key("a") == sessions.form_key("a") != sessions.form_key("b")
    assert Sessions(ManualClock()).form_key("a") != sessions.form_key("a")


@pytest.mark.parametrize("wanted", ["/", "/queues?place=active&q=a", "/pods/shop/web%2D1"])
def test_after_logging_in_one_goes_on(wanted):
    assert here(wanted) == wanted


@pytest.mark.parametrize(
    "wanted",
    ["", "//evil.example", "https://evil.example", "/\\evil.example", "/\t/evil", "javascript:1", "/login", "///x"],
)
def test_after_logging_in_nobody_is_sent_elsewhere(wanted):
    assert here(wanted) == "/"
