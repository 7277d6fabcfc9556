"""deploy/pin-images, with a docker that knows digests."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ASKED = 'echo "$4" >>"$ASKED"\n'


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What of the checkout it reads and writes."""
    (tmp_path / "deploy").mkdir()
    for name in ("deploy/Dockerfile", "docker-compose.yml"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def pin(checkout: Path, digest: str) -> subprocess.CompletedProcess[str]:
    programs = checkout / "bin"
    programs.mkdir(exist_ok=True)
    (programs / "docker").write_text(f"#!/bin/sh\n{ASKED}echo '{digest}'\n")
    (programs / "docker").chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "ASKED": str(checkout / "asked")}
    words = [ROOT / "deploy" / "pin-images"]
    return subprocess.run(words, cwd=checkout, env=environment, capture_output=True, text=True, check=False)


def test_every_image_gets_the_digest_behind_its_name_and_a_newer_one_later(checkout: Path) -> None:
    for digest in ("sha256:aa", "sha256:bb"):
        done = pin(checkout, digest)
        assert done.returncode == 0, done.stderr
        asked = (checkout / "asked").read_text().split()
        assert asked[-4:] == [
            "python:3.12-slim",
            "redis:7.4-alpine",
            "prom/prometheus:v3.5.0",
            "grafana/grafana:12.1.1",
        ]
        assert f"ARG PYTHON_IMAGE=python:3.12-slim@{digest}\n" in (checkout / "deploy" / "Dockerfile").read_text()
        compose = (checkout / "docker-compose.yml").read_text()
        for name in asked[1:4]:
            assert f"_IMAGE:-{name}@{digest}}}" in compose
        assert compose.count("@sha256:") == 3


def test_no_digest_changes_nothing(checkout: Path) -> None:
    before = (checkout / "deploy" / "Dockerfile").read_text()
    done = pin(checkout, "")
    assert done.returncode == 1
    assert "the digest of python:3.12-slim" in done.stderr
    assert (checkout / "deploy" / "Dockerfile").read_text() == before
