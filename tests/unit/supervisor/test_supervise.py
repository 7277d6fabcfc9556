from dsched.supervisor import supervise


def test_endings_in_words():
    assert supervise.ending(0) == "exit code 0"
    assert supervise.ending(3) == "exit code 3"
    assert supervise.ending(-9) == "killed by SIGKILL"
    assert supervise.ending(-40) == "killed by signal 40"
