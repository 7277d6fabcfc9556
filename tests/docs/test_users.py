"""The Redis users of deploy/redis and their table in docs/security.md are those of docs/users.py."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def users() -> ModuleType:
    spec = importlib.util.spec_from_file_location("redis_users", DOCS / "users.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["redis_users"] = module
    spec.loader.exec_module(module)
    return module


def test_the_page_and_the_files_are_written(users: ModuleType) -> None:
    text = (DOCS / "security.md").read_text()
    assert users.page(text) == text, "run: python docs/users.py"
    for version, file in users.FILES.items():
        assert file.read_text() == users.acl(version), "run: python docs/users.py"


def test_both_files_give_the_same_keys_and_commands(users: ModuleType) -> None:
    """Redis 6.2 has no selectors: it gives all commands of a user for all of its keys, and none besides."""
    old, new = (users.acl(version).splitlines() for version in (6, 7))
    assert [line.split()[:4] for line in old] == [line.split()[:4] for line in new]
    for six, seven in zip(old[1:], new[1:], strict=True):
        words = seven.replace("(", "").replace(")", "").split()
        keys = {word.partition("~")[2] for word in words if "~" in word}
        covered = keys if "dsched:{*}:*" not in keys else {"dsched:{*}:*"}
        assert {word[1:] for word in six.split() if word.startswith("~")} == covered
        assert {word for word in six.split() if word[0] in "+-"} == {word for word in words if word[0] in "+-"}
