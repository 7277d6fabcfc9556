"""The list of keys is complete and without doubles."""

from dsched.cluster.standalone import keys as cluster_keys
from dsched.state import keys
from dsched.state.keys import Key


def test_every_key_is_in_the_list():
    named = [value for value in vars(keys).values() if isinstance(value, Key)]
    assert set(named) == set(keys.ALL)


def test_names_are_unique_and_no_family_holds_another_key():
    names = [key.name for key in (*keys.ALL, *cluster_keys.ALL)]
    assert len(set(names)) == len(names)
    families = [name for name in names if name.endswith(":")]
    assert not [(family, name) for family in families for name in names if name != family and name.startswith(family)]


def test_types_are_those_of_redis():
    assert {key.type for key in keys.ALL} <= {"string", "list", "hash", "zset", "stream"}


def test_every_key_says_what_is_in_it():
    assert all(key.members for key in keys.ALL)
