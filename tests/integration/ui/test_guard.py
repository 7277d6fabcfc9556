"""Who is let in, and what browsers are told."""

import re

import pytest

TOKEN = "correct-horse-battery-staple"
FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.fixture
def locked(make_page):
    """A page with a token, served to other machines."""
    return make_page(host="0.0.0.0", token=TOKEN, writes=True)


def test_every_answer_has_a_strict_policy(page):
    for path in ("/", "/queues", "/nodes", "/what-if", "/api/overview", "/static/live.js", "/nowhere", "/api/nowhere"):
        answer = page.get(path)
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
    assert page.get("/").headers["cache-control"] == "no-store"


def test_other_names_are_refused(page):
    for path in ("/", "/api/overview", "/static/live.js"):
        assert page.get(path, headers={"host": "evil.example"}).status_code == 421
    assert page.get("/", headers={"host": "localhost:8484"}).status_code == 200


def test_forms_of_other_sites_are_refused(page):
    other = {"origin": "http://evil.example"}
    for path in ("/what-if", "/api/what-if"):
        assert page.post(path, content="manifest=x", headers={**FORM, **other}).status_code == 403
        assert (
            page.post(path, content="manifest=x", headers={**FORM, "sec-fetch-site": "cross-site"}).status_code == 403
        )


def test_other_sites_pages_load_nothing_but_may_link_here(page):
    other = {"sec-fetch-site": "cross-site"}
    for path in ("/api/nodes", "/static/icon.svg", "/queues"):
        assert page.get(path, headers={**other, "sec-fetch-mode": "no-cors"}).status_code == 403
        assert page.get(path, headers={**other, "sec-fetch-mode": "navigate"}).status_code == 200
        frame = {**other, "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}
        assert page.get(path, headers=frame).status_code == 403


def test_no_token_no_answer(locked):
    for path in ("/", "/queues", "/pods/a/b", "/nowhere"):
        answer = locked.get(path)
        assert (answer.status_code, answer.headers["location"][:12]) == (303, "/login?next=")
    for path in ("/api/overview", "/api/events", "/api/", "/api/nowhere"):
        answer = locked.get(path)
        assert (answer.status_code, answer.headers["www-authenticate"][:6]) == (401, "Bearer")
    assert locked.post("/pause", content="", headers=FORM).status_code == 401
    assert locked.get("/api/overview", headers={"authorization": f"Bearer {TOKEN}x"}).status_code == 401
    assert locked.get("/api/overview", headers={"cookie": "dsched-ui=guess"}).status_code == 401


def test_programs_show_the_token(locked):
    shown = {"authorization": f"Bearer {TOKEN}"}
    assert locked.get("/api/overview", headers=shown).json()["leader"] is None
    assert locked.post("/api/pause", headers=shown).json()["changed"] is True


def test_logging_in_and_out(locked):
    assert "That is not the token" in locked.post("/login", data={"token": "x", "next": "/queues"}).text
    answer = locked.post("/login", data={"token": TOKEN, "next": "/queues"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/queues")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert TOKEN not in cookie
    assert locked.get("/queues").status_code == 200
    key = re.search(r'name="key" value="([0-9a-f]+)"', locked.get("/").text)
    assert key is not None
    assert locked.post("/pause", data={"key": key[1]}).status_code == 200
    assert locked.post("/logout", data={}).headers["location"] == "/login"
    assert locked.get("/queues").status_code == 303


@pytest.mark.parametrize("other", ['theme={"a":1}', "a b=c; d", "=; ;;", 'x="', "a[0]=1,2", "ä=ö"])
def test_cookies_of_other_pages_on_this_machine_are_in_nobodys_way(locked, other):
    own = locked.post("/login", data={"token": TOKEN}).headers["set-cookie"].partition(";")[0]
    for cookies in (f"{other}; {own}", f"{own}; {other}"):
        assert locked.get("/queues", headers={"cookie": cookies.encode()}).status_code == 200
    assert locked.get("/queues", headers={"cookie": other.encode()}).status_code == 303


def test_the_cookie_of_a_page_over_tls_is_not_sent_without(make_page):
    page = make_page(token=TOKEN, secure=True)
    assert "Secure" in page.post("/login", data={"token": TOKEN}).headers["set-cookie"]


def test_the_token_is_in_no_log(locked, caplog):
    caplog.set_level(0)
    locked.post("/login", data={"token": "wrong-horse-battery-staple"})
    locked.post("/login", data={"token": TOKEN})
    locked.get("/api/overview", headers={"authorization": f"Bearer {TOKEN}"})
    assert "horse" not in caplog.text
    assert any(record.msg == "wrong token" for record in caplog.records)


def test_what_is_too_large_is_refused(page):
    assert page.post("/api/what-if", content=b"a" * (256 * 1024 + 1)).status_code == 413
    assert page.post("/what-if", content=b"a" * (1024 * 1024 + 1), headers=FORM).status_code == 413
    assert page.post("/what-if", content="x=1", headers={"content-type": "text/plain"}).status_code == 415
    assert page.post("/what-if", content="&".join("a=1" for _ in range(30)), headers=FORM).status_code == 400


def test_static_files_are_all_that_is_served_from_disk(page):
    assert page.get("/static/page.css").headers["content-type"].startswith("text/css")
    assert page.get("/static/../app.py").status_code == 404
    assert page.get("/static/%2e%2e/app.py").status_code == 404
    assert page.get("/static/").status_code == 404
