"""The Redis users of deploy/redis and their table in docs/security.md are those of scripts/docs/users.py."""

from scripts.docs import users


def test_both_files_give_the_same_keys_and_commands() -> None:
    """Redis 6.2 has no selectors: it gives all commands of a user for all of its keys, and none besides."""
    old, new = (users.acl(version).splitlines() for version in (6, 7))
    assert [line.split()[:4] for line in old] == [line.split()[:4] for line in new]
    for six, seven in zip(old[1:], new[1:], strict=True):
        words = seven.replace("(", "").replace(")", "").split()
        keys = {word.partition("~")[2] for word in words if "~" in word}
        covered = keys if "dsched:{*}:*" not in keys else {"dsched:{*}:*"}
        assert {word[1:] for word in six.split() if word.startswith("~")} == covered
        assert {word for word in six.split() if word[0] in "+-"} == {word for word in words if word[0] in "+-"}
