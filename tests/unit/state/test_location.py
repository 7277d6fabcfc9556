"""Redis URLs: read for the client and for Celery, and shown without what is secret."""

import ssl

import pytest

from dsched.errors import StateError
from dsched.state import client, location
from dsched.state.broker import celery_settings
from dsched.state.client import connect

SECRET = "s3cr3t"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://h:1/0", "redis://h:1/0"),
        (f"redis://:{SECRET}@h:1/0", "redis://:***@h:1/0"),
        (f"rediss://me:{SECRET}@h/0?ssl_ca_certs=/a", "rediss://me:***@h/0?ssl_ca_certs=/a"),
        (f"redis+sentinel://me:{SECRET}@a:1,b:2/m/0", "redis+sentinel://me:***@a:1,b:2/m/0"),
        (f"redis+sentinel://a/m?sentinel_password={SECRET}&x=1", "redis+sentinel://a/m?sentinel_password=***&x=1"),
        (f"redis://h/0?password={SECRET}", "redis://h/0?password=***"),
        (f"unix://:{SECRET}@/run/redis.sock", "unix://:***@/run/redis.sock"),
        (f"redis://me:{SECRET}/x@y@h/0", "redis://me:***@h/0"),
        (f"redis://:[{SECRET}@h/0", "redis://:***@h/0"),
        (f"me:{SECRET}@h", "me:***@h"),
    ],
)
def test_passwords_are_hidden_also_where_the_url_is_none(url: str, shown: str) -> None:
    assert client.shown(url) == shown


@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            "redis",
            "http://h/0",
            "redis://h:port/0",
            "redis+sentinel://h:1",
            "redis+sentinel://h:x/m",
            "redis+x://h",
        ),
        *(
            "redis+sentinel://h:1/m/x",
            "redis+sentinel://h:99999/m",
            "unix+sentinel://h/m",
            "redis+sentinel://h/m?sentinel_x=1",
        ),
        f"redis://:{SECRET}/{SECRET}@h:1/0",
        f"redis://:{SECRET}#{SECRET}@h:1/0",
        f"redis://me:{SECRET}@h:po{SECRET}/0?password={SECRET}",
    ],
)
def test_what_is_no_url_is_refused_with_the_forms_and_without_the_password(url: str) -> None:
    with pytest.raises(StateError, match=r"is not a Redis URL; expected redis://HOST:PORT/DB") as found:
        client.connect(url)
    if f":{SECRET}" in url:
        assert f":{SECRET}" not in str(found.value)
    assert found.value.__cause__ is None


def test_sentinels_are_read() -> None:
    found = location.read("redis+sentinel://me:a%40b@one:1,two,[::1]:3/master/4?sentinel_password=c&ssl_x=1")
    assert found.sentinels == (("one", 1), ("two", 26379), ("::1", 3))
    assert (found.master, found.options["db"], found.options["password"]) == ("master", 4, "a@b")
    assert found.sentinel_options == {"password": "c"}
    assert "a@b" not in repr(found)


def test_celery_goes_where_the_store_goes() -> None:
    assert celery_settings("redis://me:p@h:1/2", "s")["broker_url"] == "redis://me:p@h:1/2"
    settings = celery_settings("redis+sentinel://me:p%2F@one:1,two:2/master/4?sentinel_password=c", "s")
    assert settings["broker_url"] == "sentinel://me:p%2F@one:1/4;sentinel://me:p%2F@two:2/4"
    assert settings["broker_transport_options"]["master_name"] == "master"
    assert settings["broker_transport_options"]["sentinel_kwargs"]["password"] == "c"
    assert celery_settings("unix:///run/r.sock?db=3", "s")["broker_url"] == "redis+socket:///run/r.sock?virtual_host=3"


@pytest.mark.parametrize("url", ["redis://h:1/0", "redis+sentinel://h:1/m/0"])
def test_nobody_tries_for_long_to_connect_to_where_redis_is_no_more(url: str) -> None:
    """Decisions are to go on within 2 s once it is back somewhere else."""
    settings = celery_settings(url, "s")["broker_transport_options"]
    given = (connect(url).redis.connection_pool.connection_kwargs, settings, settings.get("sentinel_kwargs", settings))
    assert all(options["socket_connect_timeout"] <= 2.0 for options in given)


@pytest.mark.parametrize("scheme", ["rediss://h:1/0", "rediss+sentinel://h:1/m/0"])
def test_celery_checks_certificates_unless_the_url_says_otherwise(scheme: str) -> None:
    assert celery_settings(scheme, "s")["broker_use_ssl"]["ssl_cert_reqs"] is ssl.CERT_REQUIRED
    settings = celery_settings(scheme + "?ssl_ca_certs=/ca.pem", "s")["broker_use_ssl"]
    assert (settings["ssl_cert_reqs"], settings["ssl_ca_certs"]) == (ssl.CERT_REQUIRED, "/ca.pem")
    assert celery_settings(scheme + "?ssl_cert_reqs=none", "s")["broker_use_ssl"]["ssl_cert_reqs"] is ssl.CERT_NONE
