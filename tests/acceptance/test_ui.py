"""`dsched ui` against whole systems: as a process, and in a browser the way a new user goes.

With ``DSCHED_SCREENSHOTS=docs/images`` the story writes the pictures of docs/ui.md.
"""

import contextlib
import json
import ssl
from pathlib import Path

import httpx
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from dsched.state import attempt_history, client, keys
from dsched.state.address import read
from dsched.ui.live import MOST_LISTENERS
from tests.acceptance import certificates
from tests.acceptance.browser import browser, chrome
from tests.acceptance.fixtures import end
from tests.acceptance.processes import wait_until
from tests.acceptance.served_page import PATIENCE_S, served
from tests.acceptance.system import System
from tests.manifests import node_manifest, pod_manifest

__all__ = ["browser", "chrome"]

EXAMPLE = Path(__file__).parents[2] / "examples" / "01-first-cluster"
HOSTILE = '</td></script><script>window.pwned = 1</script><img src=x onerror="window.pwned = 1">'
WHAT_IF = """\
apiVersion: v1
kind: Pod
metadata: {name: new-database}
spec:
  nodeSelector: {disk: ssd}
  containers:
  - {name: main, image: postgres, resources: {requests: {cpu: '1', memory: 4Gi}}}
"""


@pytest.fixture(scope="module")
def first(redis_program, tmp_path_factory):
    """A system with the first example: twelve nodes, and pods of which five do not fit."""
    system = System(tmp_path_factory.mktemp("first"))
    try:
        system.up("--evaluators", "1", "--binders", "1")
        system.ask("apply", "-f", str(EXAMPLE))
        system.settle()
        yield system
    finally:
        end([system])


@pytest.fixture(scope="module")
def page(first):
    """A page about it that only looks."""
    with served(first) as page:
        yield page


def store_of(system):
    address = read(system.data_dir)
    assert address is not None
    return client.connect(address.redis_url, address.name)


# -- the process -------------------------------------------------------------------------------------------------------


def test_it_ends_when_it_is_told_to_with_pages_open(first):
    with served(first) as page:
        assert page.get("/api/overview").json()["cluster"] == "standalone"
        with httpx.stream("GET", f"{page.url}/api/events", timeout=PATIENCE_S) as events:
            lines = events.iter_lines()
            assert events.headers["content-type"].startswith("text/event-stream")
            assert next(lines) == "event: overview"
            number = int(next(lines).removeprefix("id: "))
            overview = json.loads(next(lines).removeprefix("data: "))
            assert sum(overview["queues"].values()) == 5
            assert overview["leader"]
            # Another look comes by itself.
            wait_until("the next event", lambda: next(lines) == f"id: {number + 1}")
            assert page.stop() == 0
        assert "Traceback" not in page.log.read_text()


def test_a_name_that_is_allowed_is_taken_at_any_port(first):
    with served(first, "--allow-host", "Proxy.example:8443") as page:
        for host in ("proxy.example:8443", "proxy.example"):
            assert page.get("/api/session", headers={"host": host}).status_code == 200


def test_other_addresses_need_a_token(first, tmp_path):
    with served(first, "--host", "0.0.0.0") as page:
        (token,) = [line.split()[1] for line in page.said.splitlines() if line.startswith("token:")]
        assert len(token) >= 40
        assert page.get("/api/overview").status_code == 401
        assert page.get("/api/overview", headers={"authorization": f"Bearer {token}"}).status_code == 200
        assert page.get("/", headers={"host": "evil.example"}).status_code == 421
    (tmp_path / "token").write_text("a-token-from-a-file\n")
    with served(first, "--host", "0.0.0.0", "--token-file", str(tmp_path / "token")) as page:
        assert "token" not in page.said
        assert page.get("/api/overview", headers={"authorization": "Bearer a-token-from-a-file"}).status_code == 200
        assert "a-token-from-a-file" not in page.log.read_text()


def test_over_tls(first, tmp_path):
    made = certificates.make(tmp_path / "tls")
    with served(first, "--tls-cert", str(made.certificate), "--tls-key", str(made.key)) as page:
        assert page.url.startswith("https://")
        context = ssl.create_default_context(cafile=str(made.authority))
        assert page.get("/", verify=context).status_code == 200


def test_a_port_that_is_taken(first, page):
    port = page.url.rpartition(":")[2]
    assert f"cannot listen on 127.0.0.1 port {port}" in first.ask("ui", "--port", port, exit_code=1)


# -- the browser -------------------------------------------------------------------------------------------------------


def test_a_new_user_finds_out_why_a_pod_waits(first, page, browser):
    browser.open(page.url)
    browser.wait_for("leader-1", "#leader")
    browser.wait_for("live", "#live")
    wait_until(
        "the chart is drawn", lambda: browser.run("return +document.querySelector('#throughput').dataset.points")
    )
    first.apply(*(pod_manifest(f"rush/web-{number}") for number in range(40)))
    rates = "return [...document.querySelectorAll('.key')].map((each) => each.innerText).join(' ')"
    wait_until("the rush shows", lambda: "scheduled 0/s" not in str(browser.run(rates)))
    browser.picture("ui-overview")
    first.told("delete", "pods", "--all", "-n", "rush")

    browser.click(".tiles a[href$='unschedulable']")
    browser.wait_for("Insufficient cpu", "#pods")
    assert "default/too-big" in browser.text("#pods")
    browser.picture("ui-queues")
    browser.write("#q", "too-big")
    browser.click(".filter button")
    wait_until("only one pod is left", lambda: browser.text("#pods").count("default/") == 1)

    browser.link("default/too-big")
    browser.wait_for("It is unschedulable", "#standing")
    browser.wait_for("8 Insufficient cpu", "#why")
    browser.wait_for("Attempt 1")
    browser.picture("ui-pod")

    browser.click("#explain")
    browser.wait_for("nowhere: 0/12 nodes are available", "#decision")
    row = browser.driver.find_element(By.XPATH, "//table[@id='matrix']//tr[th/a='node-a1']").text
    assert "✓ passed" in row
    assert "✗ rejected" in row
    assert "NodeResourcesFit: Insufficient cpu" in row
    browser.picture("ui-explanation", 1000)
    assert browser.errors() == []


def test_what_if(first, page, browser):
    before = first.get("pods")
    browser.open(f"{page.url}/what-if")
    browser.write("#manifest", "kind: Pod")
    browser.click("#try")
    browser.wait_for("manifest: apiVersion: is missing: expected v1", ".problems")
    # What was written is still there, to be put right.
    assert browser.run("return document.querySelector('#manifest').value") == "kind: Pod"
    assert [each for each in browser.errors() if "422" not in each] == []

    browser.write("#manifest", WHAT_IF)
    browser.click("#try")
    browser.wait_for("default/new-database", "#placements")
    placed = browser.text("#placements")
    assert "placed" in placed
    assert any(node in placed for node in ("node-a1", "node-b1", "node-c1"))
    assert "NodeAffinity" in browser.text("#reasons")
    browser.picture("ui-what-if", 1000)
    assert browser.errors() == []
    assert first.get("pods") == before


def test_dropping_a_file(first, page, browser):
    browser.open(f"{page.url}/what-if")
    drop = """
        const files = new DataTransfer();
        files.items.add(new File([arguments[0]], "pod.yaml"));
        document.querySelector(arguments[1]).dispatchEvent(
          new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true }));
    """
    browser.driver.execute_script(drop, WHAT_IF, "#manifest")
    wait_until("it is in the text", lambda: browser.run("return document.querySelector('#manifest').value") == WHAT_IF)
    browser.driver.execute_script(drop, "#" * (257 * 1024), "#manifest")
    browser.wait_for("more than 256 KiB", "#drop-trouble")


def test_nodes_with_the_keyboard(first, page, browser):
    browser.open(f"{page.url}/nodes")
    wait_until("the map is drawn", lambda: browser.run("return document.querySelector('#map').dataset.nodes") == "12")
    browser.picture("ui-nodes")
    options = browser.driver.find_elements(By.CSS_SELECTOR, "#resource option")
    assert [each.text for each in options] == ["fullest resource", "cpu", "memory", "pods", "nvidia.com/gpu"]
    canvas = browser.find("#map")
    canvas.send_keys(Keys.ARROW_RIGHT)
    browser.wait_for("gpu-a: cpu 12/32 (38%)", "#map-node")
    canvas.send_keys(Keys.END)
    browser.wait_for("spot-c:", "#map-node")
    canvas.send_keys(Keys.ENTER)
    browser.wait_for("Node spot-c", "h1")
    assert "lifetime=spot:NoSchedule" in browser.text()
    assert browser.errors() == []


def test_a_page_that_is_open_stays_up_to_date(first, browser):
    with served(first) as page:
        browser.open(f"{page.url}/queues?place=unschedulable&q=late")
        browser.wait_for("No pod here has “late”")
        first.apply(pod_manifest("default/late", nodeSelector={"disk": "none"}))
        browser.wait_for("default/late", "#pods")
        first.told("delete", "pod", "late")
        browser.wait_for("No pod here has “late”")
        page.stop()
        browser.wait_for("connection lost", "#live")


def test_a_page_that_was_refused_its_updates_asks_again(first, browser):
    with served(first) as page, contextlib.ExitStack() as others:
        for _ in range(MOST_LISTENERS):
            events = others.enter_context(httpx.stream("GET", f"{page.url}/api/events", timeout=PATIENCE_S))
            assert events.status_code == 200
        browser.open(f"{page.url}/queues")
        browser.wait_for("live updates were refused; asking again in", "#live")
        others.close()
        wait_until("it is live", lambda: browser.text("#live") == "live")
        assert [each for each in browser.errors() if "503" not in each] == []


def test_hostile_texts_run_no_script(first, page, browser):
    """Reasons come from plugins and webhooks, whose authors may mean no good."""
    store = store_of(first)
    record = store.key(keys.POD.name + "default/on-mars")
    before = store.redis.hget(record, "message")
    history = store.key(keys.EXPLAINED.name + "default/on-mars")
    kept = store.redis.lrange(history, 0, -1)
    first.ask("pause", "--profile", "default-scheduler", "--reason", HOSTILE)
    try:
        store.redis.hset(record, "message", HOSTILE)
        (attempt, *_) = attempt_history.read(store, "default/on-mars")
        text = json.loads(json.dumps({"message": HOSTILE}))["message"]
        told = kept[0].replace(json.dumps(attempt.message).encode(), json.dumps(text).encode())
        store.redis.lset(history, 0, told)
        for path, css in (
            ("/", "main"),
            ("/queues?place=unschedulable", "#pods"),
            ("/pods/default/on-mars", "main"),
        ):
            browser.open(page.url + path)
            browser.wait_for("live", "#live")
            browser.wait_for("<script>window.pwned = 1</script>", css)
            assert browser.run("return window.pwned ?? null") is None
            assert browser.run("return document.querySelectorAll('main script, main img').length") == 0
        browser.open(f"{page.url}/what-if")
        browser.write("#manifest", f"</textarea>{HOSTILE}")
        browser.click("#try")
        browser.wait_for("These cannot be taken")
        assert browser.run("return window.pwned ?? null") is None
        assert [each for each in browser.errors() if "422" not in each] == []
    finally:
        store.redis.hset(record, "message", before)
        store.redis.lset(history, 0, kept[0])
        store.close()
        first.ask("resume")


def test_with_a_token_and_changes_allowed(first, browser):
    with served(first, "--allow-write", variables={"DSCHED_UI_TOKEN": "a-token-from-outside"}) as page:
        browser.open(f"{page.url}/pods/default/on-mars")
        browser.write("#token", "a-token-from-elsewhere")
        browser.click("main button")
        browser.wait_for("That is not the token")
        browser.write("#token", "a-token-from-outside")
        browser.click("main button")
        browser.wait_for("Pod default/on-mars", "h1")
        browser.click(".actions button")
        # Where it stands at that moment is not this test's to say.
        browser.wait_for("default/on-mars: ", "#done")

        browser.open(page.url)
        browser.write("#reason", "a try")
        browser.click("form[action='/pause'] button")
        browser.wait_for("paused: all profiles", "#done")
        assert first.status()["state"]["paused"][0]["reason"] == "a try"
        browser.link("Overview")
        browser.wait_for("all profiles for")
        browser.click("form[action='/resume'] button")
        browser.wait_for("resumed: all profiles", "#done")
        assert first.status()["state"]["paused"] == []
        assert "a-token-from-outside" not in page.log.read_text()
        assert [each for each in browser.errors() if "401" not in each] == []


def test_nodes_can_be_added_while_the_map_is_open(first, page, browser):
    browser.open(f"{page.url}/nodes")
    wait_until("the map is drawn", lambda: browser.run("return document.querySelector('#map').dataset.nodes") == "12")
    first.apply(node_manifest("new-node"))
    wait_until("it shows", lambda: browser.run("return document.querySelector('#map').dataset.nodes") == "13")
    first.told("delete", "node", "new-node")
