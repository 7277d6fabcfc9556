from dsched.supervisor import keeper


def test_groups_that_ended_are_forgotten():
    assert keeper.follow(["+10\n", "+11\n", "-10\n", "+12\n"]) == {11, 12}


def test_a_supervisor_that_stopped_cleanly_leaves_nothing():
    assert keeper.follow(["+10\n", "-10\n"]) == set()


def test_an_unknown_group_that_ended_is_no_trouble():
    assert keeper.follow(["-10\n"]) == set()
