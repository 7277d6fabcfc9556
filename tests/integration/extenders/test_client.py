"""Calling one extender over HTTP and TLS: kept connections, deadlines, the breaker, answers nobody can read."""

import base64
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY

from dsched.clock import SystemClock
from dsched.config import ExtenderTls
from dsched.errors import PluginError
from dsched.extenders import network, wire
from dsched.extenders.client import OPENS_AFTER, PAUSE_S, CallFailed, Client, Ending
from tests.acceptance import certificates
from tests.acceptance.certificates import Certificates
from tests.extender import DRIPPING, HANG_UP, SILENT, Raw, Refusal, TestExtender
from tests.integration.extenders.conftest import Start, configuration, named

DEADLINE_S = 60.0
SHORT = {"httpTimeout": "300ms"}


class LeapingClock(SystemClock):
    """The machine's clock, which a test may put forward."""

    ahead_s = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead_s


def client(server: TestExtender | str, clock: LeapingClock | None = None, **more: Any) -> Client:
    (extender,) = configuration(named(server, "filter", **more)).extenders
    return Client(extender, clock)


def ending(made: Client, verb: str = "filter") -> Ending:
    """How a call ends."""
    try:
        made.ask(verb, b"{}", wire.filter_result)
    except CallFailed as failure:
        return failure.ending
    return Ending.OK


def message(made: Client) -> str:
    with pytest.raises(CallFailed) as raised:
        made.ask("filter", b"{}", wire.filter_result)
    return str(raised.value)


def counted(made: Client, result: str, verb: str = "filter") -> float:
    labels = {"extender": made.name, "verb": verb, "result": result}
    return REGISTRY.get_sample_value("dsched_extender_requests_total", labels) or 0.0


def shown_open(made: Client) -> float | None:
    return REGISTRY.get_sample_value("dsched_extender_breaker_open", {"extender": made.name})


def nothing(question: Any) -> Any:
    return {}


def wait_until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# -- connections ---------------------------------------------------------------------------------------------------


def test_a_connection_is_kept(start: Start) -> None:
    server = start(filter=nothing)
    made = client(server)
    assert [ending(made) for _ in range(10)] == [Ending.OK] * 10
    assert (server.verbs(), server.connections) == (["filter"] * 10, 1)
    assert {headers["Content-Type"] for headers in server.headers} == {"application/json"}
    assert counted(made, "ok") == 10


def test_an_answer_of_any_kind_leaves_the_connection_open(start: Start) -> None:
    server = start(filter=lambda question: Refusal(500))
    made = client(server)
    assert [ending(made) for _ in range(3)] == [Ending.ERROR] * 3
    assert server.connections == 1


def test_a_slash_at_the_end_of_the_address(start: Start) -> None:
    server = start(filter=nothing)
    assert ending(client(server.url + "//")) is Ending.OK


def test_a_kept_connection_that_was_closed_is_made_anew(start: Start) -> None:
    server = start(filter=nothing)
    made = client(server)
    assert ending(made) is Ending.OK
    answers = iter([HANG_UP, {}])
    server.answers["filter"] = lambda question: next(answers)
    assert ending(made) is Ending.OK
    assert server.verbs() == ["filter"] * 3


def test_what_cannot_be_repeated_is_not(start: Start) -> None:
    server = start(bind=lambda question: HANG_UP)
    made = client(server)
    with pytest.raises(CallFailed) as raised:
        made.answer(made.begin("bind", b"{}", repeatable=False), wire.binding_error)
    assert raised.value.ending is Ending.BROKEN
    assert server.verbs() == ["bind"]


def test_calls_at_the_same_time(start: Start) -> None:
    """All are under way before one is answered."""
    together = threading.Barrier(5)

    def meet(question: Any) -> Any:
        together.wait(DEADLINE_S)
        return {}

    made = client(start(filter=meet), httpTimeout="60s")
    calls = [made.begin("filter", b"{}") for _ in range(5)]
    assert [made.answer(call, wire.filter_result).error for call in calls] == [""] * 5


# -- answers that are none -------------------------------------------------------------------------------------------


def test_no_answer_in_time(start: Start) -> None:
    made = client(start(filter=lambda question: SILENT), **SHORT)
    assert message(made) == f"extender {made.name}: filter: no answer in 0.3 s"
    assert counted(made, "timeout") == 1


def test_an_answer_that_drips_in_is_none(start: Start) -> None:
    """Each byte comes in time, the last one does not."""
    assert ending(client(start(filter=lambda question: DRIPPING), **SHORT)) is Ending.TIMEOUT


def test_nobody_there(start: Start) -> None:
    server = start()
    server.stop()
    made = client(server)
    assert ending(made) is Ending.UNREACHABLE
    assert "no connection" in message(made)


def test_the_connection_ends(start: Start) -> None:
    assert ending(client(start(filter=lambda question: HANG_UP))) is Ending.BROKEN


def test_a_status_other_than_200(start: Start) -> None:
    made = client(start(filter=lambda question: Refusal(503)))
    assert message(made) == f"failed filter with extender at URL {made.name}/filter, code 503"


@pytest.mark.parametrize("raw", [b"", b"<html>", b"[]", b"\xff\xfe"])
def test_what_nobody_can_read(start: Start, raw: bytes) -> None:
    made = client(start(filter=lambda question: Raw(raw)))
    assert ending(made) is Ending.ERROR
    assert message(made).startswith(f"extender {made.name}: filter: ")
    assert counted(made, "error") == 2


def test_an_address_that_is_none() -> None:
    assert ending(client("gopher://127.0.0.1/x")) is Ending.ERROR


# -- the breaker -----------------------------------------------------------------------------------------------------


def opened(start: Start, clock: LeapingClock) -> tuple[TestExtender, Client]:
    """An extender that nobody waits for any more."""
    server = start(filter=lambda question: HANG_UP, bind=lambda question: HANG_UP)
    made = client(server, clock)
    assert [ending(made) for _ in range(OPENS_AFTER)] == [Ending.BROKEN] * OPENS_AFTER
    server.asked.clear()
    return server, made


def test_an_open_breaker_sends_nothing(start: Start) -> None:
    server, made = opened(start, LeapingClock())
    assert [ending(made) for _ in range(5)] == [Ending.SKIPPED] * 5
    assert "does not answer; it is asked again in" in message(made)
    assert server.verbs() == []
    assert (counted(made, "skipped"), shown_open(made)) == (6, 1)


def test_answers_that_are_errors_do_not_open_it(start: Start) -> None:
    made = client(start(filter=lambda question: Refusal(500)))
    assert [ending(made) for _ in range(5)] == [Ending.ERROR] * 5


def test_nobody_waits_for_the_call_on_trial(start: Start) -> None:
    """It is under way while calls are still refused; once it is answered, calls are made again."""
    clock = LeapingClock()
    server, made = opened(start, clock)
    let = threading.Event()

    def answer(question: Any) -> Any:
        let.wait(DEADLINE_S)
        return {}

    server.answers["filter"] = answer
    clock.ahead_s += PAUSE_S
    assert ending(made) is Ending.SKIPPED
    wait_until(lambda: server.verbs() == ["filter"])
    assert ending(made) is Ending.SKIPPED
    let.set()
    wait_until(lambda: ending(made) is Ending.OK)
    assert shown_open(made) == 0
    assert ending(made) is Ending.OK


def test_a_trial_that_is_not_answered_in_time(start: Start) -> None:
    clock = LeapingClock()
    server, made = opened(start, clock)
    server.answers["filter"] = lambda question: SILENT
    clock.ahead_s += PAUSE_S
    assert ending(made) is Ending.SKIPPED
    wait_until(lambda: server.verbs() == ["filter"])
    clock.ahead_s += made.timeout_s
    server.answers["filter"] = nothing
    assert ending(made) is Ending.SKIPPED, "a pause begins anew"
    clock.ahead_s += PAUSE_S
    wait_until(lambda: ending(made) is Ending.OK)


def test_a_bind_on_trial_is_waited_for(start: Start) -> None:
    clock = LeapingClock()
    server, made = opened(start, clock)
    server.answers["bind"] = lambda question: {"Error": ""}
    clock.ahead_s += PAUSE_S
    call = made.begin("bind", b"{}", repeatable=False)
    assert made.answer(call, wire.binding_error) == ""
    assert server.verbs() == ["bind"]


# -- TLS -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates.make(tmp_path_factory.mktemp("tls") / "pem")


def context(pem: Certificates, *, ask: bool = False) -> ssl.SSLContext:
    """The server's end; ``ask`` wants to see a certificate of the caller."""
    found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    found.load_cert_chain(pem.certificate, pem.key)
    if ask:
        found.verify_mode = ssl.CERT_REQUIRED
        found.load_verify_locations(pem.authority)
    return found


def data(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def test_an_authority_of_its_own(start: Start, pem: Certificates) -> None:
    server = start(context(pem), filter=nothing)
    files = client(server, enableHTTPS=True, tlsConfig={"caFile": str(pem.authority)})
    assert [ending(files) for _ in range(3)] == [Ending.OK] * 3
    assert server.connections == 1
    assert ending(client(server, enableHTTPS=True, tlsConfig={"caData": data(pem.authority)})) is Ending.OK


def test_a_certificate_that_nobody_vouches_for(start: Start, pem: Certificates) -> None:
    server = start(context(pem), filter=nothing)
    assert ending(client(server)) is Ending.UNREACHABLE
    assert ending(client(server, tlsConfig={"insecure": True})) is Ending.OK
    assert ending(client(server, enableHTTPS=True)) is Ending.OK, "no authority was given, so none is asked"


def test_the_name_on_the_certificate(start: Start, pem: Certificates) -> None:
    server = start(context(pem), filter=nothing)
    by_name = server.url.replace("127.0.0.1", "localhost")
    authority = {"caFile": str(pem.authority)}
    assert ending(client(by_name, tlsConfig=authority)) is Ending.UNREACHABLE
    assert ending(client(by_name, tlsConfig={**authority, "serverName": "127.0.0.1"})) is Ending.OK


def test_a_client_certificate(start: Start, pem: Certificates) -> None:
    server = start(context(pem, ask=True), filter=nothing)
    authority = {"caFile": str(pem.authority)}
    assert ending(client(server, tlsConfig=authority)) is not Ending.OK
    own = {"certFile": str(pem.certificate), "keyFile": str(pem.key)}
    assert ending(client(server, tlsConfig={**authority, **own})) is Ending.OK
    own = {"certData": data(pem.certificate), "keyData": data(pem.key)}
    assert ending(client(server, tlsConfig={**authority, **own})) is Ending.OK


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"caFile": "/no/such/file"}, "caFile /no/such/file cannot be read: No such file or directory"),
        ({"caData": base64.b64encode(b"x").decode()}, "not PEM"),
        ({"caFile": "{ca}", "insecure": True}, "insecure and a certificate authority exclude each other"),
        ({"certFile": "{cert}"}, "needs both certificate and key"),
        ({"certFile": "{ca}", "keyFile": "{key}"}, "not PEM certificates and keys"),
    ],
)
def test_settings_that_cannot_be_used(pem: Certificates, settings: dict[str, Any], why: str) -> None:
    paths = {"{ca}": str(pem.authority), "{cert}": str(pem.certificate), "{key}": str(pem.key)}
    given = {name: paths.get(value, value) for name, value in settings.items()}
    with pytest.raises(PluginError, match=r"^extender https://x: tlsConfig: ") as raised:
        client("https://x", tlsConfig=given)
    assert why in str(raised.value)


def test_data_goes_before_files(pem: Certificates) -> None:
    (extender,) = configuration(
        named("https://x", tlsConfig={"caFile": "/no/such/file", "caData": data(pem.authority)})
    ).extenders
    assert isinstance(extender.tls, ExtenderTls)
    assert network.tls_context(extender).verify_mode is ssl.CERT_REQUIRED
    assert extender.tls.ca_file == "/no/such/file"
