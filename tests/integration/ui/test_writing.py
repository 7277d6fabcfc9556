"""Changes from the page: only where they are allowed, and only from the page itself."""

import json
import re
import threading

import pytest

from dsched.scheduler.ports import QueueName
from dsched.state import pauses
from dsched.state.places import Places
from tests.integration.leader.rig import Rig
from tests.integration.workers.processes import wait_until
from tests.manifests import node_manifest, pod_manifest


@pytest.fixture
def writing(make_page):
    return make_page(writes=True)


@pytest.fixture
def rig(store, tmp_path, monkeypatch):
    return Rig(store, tmp_path, monkeypatch)


def key_of(page, path="/"):
    found = re.search(r'name="key" value="([0-9a-f]+)"', page.get(path).text)
    assert found is not None
    return found[1]


def test_a_page_that_only_looks_cannot_change_anything(page, store):
    for name in ("requeue", "pause", "resume"):
        assert page.post(f"/{name}", data={"pod": "a/b"}).status_code in (404, 405)
        assert page.post(f"/api/{name}", json={}).status_code in (404, 405)
    assert page.get("/api/session").json() == {"allow_write": False, "key": None}
    assert "Pause everything" not in page.get("/").text
    assert pauses.read(store) == []


def test_a_form_without_the_key_of_the_page_is_refused(writing, store):
    for data in ({"key": ""}, {"key": "0" * 64}):
        assert writing.post("/pause", data=data).status_code == 403
        assert writing.post("/api/pause", json={}, headers={"x-dsched-key": data.get("key", "")}).status_code == 403
    other = {"origin": "http://evil.example"}
    assert writing.post("/pause", data={"key": key_of(writing)}, headers=other).status_code == 403
    assert pauses.read(store) == []


def test_pausing_and_resuming(writing, store):
    answer = writing.post("/pause", data={"key": key_of(writing), "reason": " a\ntry "})
    assert "paused: all profiles" in answer.text
    assert [(each.profile, each.reason) for each in pauses.read(store)] == [("*", "a try")]
    writing.look()
    assert "all profiles" in writing.get("/").text
    assert "resumed: all profiles" in writing.post("/resume", data={"key": key_of(writing)}).text
    assert pauses.read(store) == []


def test_programs_get_the_key_from_the_session(writing, store):
    header = {"x-dsched-key": writing.get("/api/session").json()["key"]}
    answer = writing.post("/api/pause", json={"profile": "default-scheduler"}, headers=header)
    assert answer.json() == {"changed": True, "message": "paused: profile default-scheduler"}
    assert writing.post("/api/resume", json={}, headers=header).json()["changed"] is True
    assert writing.post("/api/pause", content=json.dumps({"profile": 1}), headers=header).status_code == 400


def test_a_profile_that_there_is_not(writing, store):
    store.redis.hset(store.key("intake"), "schedulers", "default-scheduler")
    answer = writing.post("/pause", data={"key": key_of(writing), "profile": "batch"})
    assert answer.status_code == 404
    assert "profiles are default-scheduler" in answer.text


def test_trying_a_pod_now(writing, store, rig):
    led = rig.lead()
    rig.apply(node_manifest("n1"), pod_manifest("shop/web", nodeSelector={"disk": "ssd"}))
    led.turns()
    assert Places(store).counts()[QueueName.UNSCHEDULABLE] == 1
    writing.look()
    assert "Try it now" in writing.get("/pods/shop/web").text
    key = key_of(writing, "/pods/shop/web")
    answers = []
    asking = threading.Thread(
        target=lambda: answers.append(writing.post("/requeue", data={"key": key, "pod": "shop/web"}))
    )
    asking.start()

    def answered():
        rig.clock.advance(1)
        led.turn()
        return answers

    wait_until("the leader has answered", answered)
    asking.join()
    assert "shop/web: put from unschedulable to the active queue" in answers[0].text


def test_trying_a_pod_while_nobody_leads(writing):
    answer = writing.post("/requeue", data={"key": key_of(writing), "pod": "shop/web"})
    assert answer.status_code == 409
    assert "nobody leads" in answer.text
