"""The score of example 04 in a leader driven step by step, over a service that is right, late, wrong or away."""

import importlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.integration.leader.rig import Rig
from tests.manifests import Json, node_manifest, pod_manifest

EXAMPLE = Path(__file__).parents[3] / "examples" / "04-score-by-price"
ZONE = "topology.kubernetes.io/zone"
INTERVAL_S = 5
"""As the example's scheduler.yaml has it."""
MANY = 40
"""So many pods on nodes of the same score do not all go to one zone, however the dice fall."""


class Service:
    """On 127.0.0.1; a test sets what it says, and lets it hang."""

    def __init__(self) -> None:
        self.body = b"{}"
        self.asked = 0
        self.answers = threading.Event()
        self.answers.set()
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                service.asked += 1
                body = service.body
                service.answers.wait(60)
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def says(self, **prices: int) -> None:
        self.body = json.dumps(prices).encode()

    def close(self) -> None:
        self.answers.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _price_score(rig: Rig, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    plugin = importlib.import_module("price_score").PriceScore
    text = (EXAMPLE / "scheduler.yaml").read_text()
    assert f"intervalSeconds: {INTERVAL_S}\n" in text
    rig.configure(text.replace("127.0.0.1:8765", f"127.0.0.1:{service.port}"), plugin)


def nodes() -> list[Json]:
    return [node_manifest(f"{zone}-{number}", labels={ZONE: zone}) for zone in ("north", "south") for number in (1, 2)]


def pods(name: str, count: int) -> list[Json]:
    tiny = [{"name": "main", "resources": {"requests": {"cpu": "10m"}}}]
    return [pod_manifest(f"shop/{name}-{number}", containers=tiny) for number in range(count)]


def zones(rig: Rig, name: str) -> set[str]:
    """The zones of the nodes where pods are bound."""
    found = [pod for pod in rig.cluster.list().pods if pod.key.startswith(f"shop/{name}-")]
    assert all(pod.node_name for pod in found)
    return {pod.node_name.partition("-")[0] for pod in found}


def test_pods_go_where_power_is_cheap_and_the_service_is_asked_once(rig: Rig, service: Service) -> None:
    service.says(north=20, south=90)
    rig.apply(*nodes(), *pods("a", 8))
    rig.lead().run()
    assert zones(rig, "a") == {"north"}
    assert service.asked == 1


def test_other_prices_count_for_pods_of_the_same_class_after_the_interval(rig: Rig, service: Service) -> None:
    service.says(north=20, south=90)
    rig.apply(*nodes(), *pods("a", 4))
    led = rig.lead()
    led.run()
    service.says(north=90, south=20)
    rig.apply(*pods("b", 4))
    led.run()
    assert zones(rig, "b") == {"north"}
    rig.clock.advance(INTERVAL_S + 1)
    rig.apply(*pods("c", 4))
    led.run()
    assert zones(rig, "c") == {"south"}
    assert service.asked == 2


def test_a_service_that_hangs_holds_nobody_up_and_its_answer_counts_when_it_comes(rig: Rig, service: Service) -> None:
    service.says(north=90, south=20)
    service.answers.clear()
    rig.apply(*nodes(), *pods("a", MANY))
    led = rig.lead()
    led.run()
    assert len(zones(rig, "a")) == 2, "no prices are known, so all zones are as good"
    rig.clock.advance(INTERVAL_S + 1)
    rig.apply(*pods("b", 1))
    led.run()
    assert service.asked == 1, "nobody asks while an answer is to come"
    service.answers.set()
    for thread in [each for each in threading.enumerate() if each.name == "prices"]:
        thread.join()
    rig.apply(*pods("c", 4))
    led.run()
    assert zones(rig, "c") == {"south"}


@pytest.mark.parametrize("body", [b"", b"[]", b"7", b'{"north": -1', b"x" * 100_000])
def test_what_is_no_list_of_prices_leaves_the_last_ones(rig: Rig, service: Service, body: bytes) -> None:
    service.says(north=20, south=90)
    rig.apply(*nodes(), *pods("a", 4))
    led = rig.lead()
    led.run()
    service.body = body
    rig.clock.advance(INTERVAL_S + 1)
    rig.apply(*pods("b", 4))
    led.run()
    assert zones(rig, "b") == {"north"}
    assert service.asked == 2


@pytest.mark.parametrize("price", ["null", '"dear"', "1e400", "-5", "9" * 30])
def test_what_is_no_price_is_passed_over(rig: Rig, service: Service, price: str) -> None:
    service.body = f'{{"north": {price}, "south": 20, "west": 90}}'.encode()
    rig.apply(*nodes(), *pods("a", 4))
    rig.lead().run()
    assert zones(rig, "a") == {"south"}


def test_a_service_that_is_away_is_no_error_of_a_pod(rig: Rig, service: Service) -> None:
    service.close()
    rig.apply(*nodes(), *pods("a", MANY))
    rig.lead().run()
    assert len(zones(rig, "a")) == 2
