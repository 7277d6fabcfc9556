"""Names of keys, and addresses as people see them."""

import pytest

from dsched.errors import StateError
from dsched.state import client


def test_every_key_of_a_system_has_its_name_in_braces_first():
    store = client.connect("redis://localhost:6379/0", "blue")
    assert store.key("queue:active") == "dsched:{blue}:queue:active"
    assert client.prefix("blue") == store.key("")
    store.close()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://localhost:6379/0", "redis://localhost:6379/0"),
        ("redis://:secret@localhost:6379/0", "redis://:***@localhost:6379/0"),
        ("rediss://me:se%40cret@host/1?x=y", "rediss://me:***@host/1?x=y"),
        ("redis://me@host", "redis://me@host"),
        ("unix:///run/redis.sock?db=1", "unix:///run/redis.sock?db=1"),
    ],
)
def test_passwords_are_not_shown(url, shown):
    assert client.shown(url) == shown


@pytest.mark.parametrize("url", ["http://localhost", "localhost:6379", "redis://host:port/0", ""])
def test_what_is_no_address_of_a_server_is_refused_with_one_that_is(url):
    with pytest.raises(StateError, match=r"is not a Redis URL; expected redis://HOST:PORT/DB"):
        client.connect(url)


def test_a_refused_address_keeps_its_password_to_itself():
    with pytest.raises(StateError) as caught:
        client.connect("http://:secret@localhost")
    assert "secret" not in str(caught.value)
