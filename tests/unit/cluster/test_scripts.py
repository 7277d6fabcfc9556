"""Headers of the Lua scripts: a script can be called unread."""

import re
from pathlib import Path

import pytest

from dsched.cluster.standalone import keys, stored
from dsched.state import scripts

NAMES = sorted(path.stem for path in stored.SCRIPTS.glob("*.lua"))
STORE_KEYS = {key.name for key in keys.ALL} | {"cluster:KIND", "devices", "reservations", "leader:epoch"}


@pytest.mark.parametrize("name", NAMES)
def test_the_header_names_exactly_what_the_body_uses(name: str):
    source = scripts.read(stored.SCRIPTS, name)
    header = "".join(line for line in source.splitlines(True) if line.startswith("-- "))
    body = "".join(line for line in source.splitlines(True) if not line.startswith("-- "))
    for what in ("KEYS", "ARGV"):
        named = set(re.findall(rf"^-- {what}\[(\d+)\]", header, re.MULTILINE))
        used = set(re.findall(rf"{what}\[(\d+)\]", body))
        assert named == used
    assert re.search(r"^-- RETURNS ", header, re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
def test_the_header_names_keys_that_there_are(name: str):
    source = scripts.read(stored.SCRIPTS, name)
    assert set(re.findall(r"^-- KEYS\[\d+\] (\S+)", source, re.MULTILINE)) <= STORE_KEYS


@pytest.mark.parametrize("path", sorted((stored.SCRIPTS / "includes").glob("*.lua")), ids=lambda path: path.stem)
def test_every_include_opens_with_its_name_and_is_used(path: Path):
    assert path.read_text().startswith(f"-- {path.stem}: ")
    assert any(f"-- INCLUDE {path.stem}\n" in (stored.SCRIPTS / f"{name}.lua").read_text() for name in NAMES)
