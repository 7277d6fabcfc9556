import re
from pathlib import Path

import pytest
import yaml

from dsched.supervisor import commands

ROOT = Path(__file__).parents[3]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]
OURS = ("leader", "evaluator", "binder", "cli", "example", "ui")
MONITORING = ("prometheus", "grafana")


def test_the_whole_system_is_there():
    assert set(SERVICES) == {"redis", *OURS, *MONITORING}
    assert [SERVICES[name]["profiles"] for name in ("cli", "example", "ui")] == [["cli"], ["cli"], ["ui"]]
    assert [SERVICES[name]["profiles"] for name in MONITORING] == [["monitoring"], ["monitoring"]]


def test_containers_and_volumes_are_named_by_a_file_that_every_compose_reads():
    """docker-compose 1.29 refuses a name in docker-compose.yml; without one it would be the folder's."""
    assert "name" not in COMPOSE
    lines = (ROOT / ".env").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == ["COMPOSE_PROJECT_NAME=dsched"]


def test_there_is_a_leader_to_stand_by():
    assert SERVICES["leader"]["deploy"]["replicas"] == 2


@pytest.mark.parametrize("name", ["evaluator", "binder"])
def test_workers_run_as_they_do_under_dsched_up(name):
    words = SERVICES[name]["command"]
    assert words[:6] == ["celery", "-A", f"workers.{name}", "worker", "--hostname", f"{name}@%h"]
    assert tuple(words[6:]) == commands.WORKER_OPTIONS


@pytest.mark.parametrize("name", ["leader", "evaluator", "binder", "ui"])
def test_processes_are_watched(name):
    """What the check says of them: tests/acceptance/test_compose_health.py."""
    assert SERVICES[name]["healthcheck"]["test"][:2] == ["CMD", "bash"]


@pytest.mark.parametrize("name", list(SERVICES))
def test_images_are_named_with_a_version(name):
    image = re.sub(r"\$\{\w+:-(.+)\}", r"\1", SERVICES[name]["image"])
    assert re.fullmatch(r"[a-z/]+:v?[0-9][0-9.]+(-alpine)?(@sha256:[0-9a-f]{64})?", image)


def test_one_service_builds_the_image_for_all():
    assert [name for name in SERVICES if "build" in SERVICES[name]] == ["leader"]
    assert {SERVICES[name]["image"] for name in OURS} == {SERVICES["leader"]["image"]}


@pytest.mark.parametrize("name", list(SERVICES))
def test_containers_have_few_rights(name):
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not service.get("privileged")


@pytest.mark.parametrize("name", OURS)
def test_ours_wait_for_redis_and_find_it(name):
    service = SERVICES[name]
    assert service["depends_on"]["redis"] == {"condition": "service_healthy"}
    assert service["environment"]["DSCHED_REDIS_URL"] == "redis://redis:6379/0"


@pytest.mark.parametrize("name", list(SERVICES))
def test_no_port_is_open_to_the_network(name):
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name].get("ports", []))


def test_redis_is_an_ordinary_user_keeps_its_data_and_is_not_open_to_the_network():
    redis = SERVICES["redis"]
    assert redis["user"] == "redis"
    assert "redis:/data" in redis["volumes"]
    assert all(port.startswith("127.0.0.1:") for port in redis["ports"])
    assert "PONG" in redis["healthcheck"]["test"][1]


def test_redis_keeps_every_write_and_evicts_nothing():
    text = (ROOT / "deploy" / "redis.conf").read_text()
    settings = dict(line.split(" ", 1) for line in text.splitlines() if line and not line.startswith("#"))
    assert settings["appendonly"] == "yes"
    assert settings["appendfsync"] == "everysec"
    assert settings["maxmemory-policy"] == "noeviction"


@pytest.mark.parametrize("name", list(SERVICES))
def test_mounted_files_are_there(name):
    mounted = [volume.split(":")[0] for volume in SERVICES[name].get("volumes", []) if volume.startswith("./")]
    assert [path for path in mounted if not (ROOT / path).exists()] == []
