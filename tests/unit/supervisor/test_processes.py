from dsched.supervisor import processes


def test_a_small_log_stays(tmp_path):
    log = tmp_path / "leader-1.log"
    log.write_text("short")
    processes.rotate(log, limit_bytes=5)
    assert [path.name for path in tmp_path.iterdir()] == ["leader-1.log"]


def test_no_log_is_no_trouble(tmp_path):
    processes.rotate(tmp_path / "leader-1.log")
    assert list(tmp_path.iterdir()) == []


def test_a_large_log_moves_on_and_three_old_ones_are_kept(tmp_path):
    log = tmp_path / "leader-1.log"
    for number in range(6):
        log.write_text(f"log {number}")
        processes.rotate(log, limit_bytes=4)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "leader-1.log.1": "log 5",
        "leader-1.log.2": "log 4",
        "leader-1.log.3": "log 3",
    }


def test_tail_gives_the_last_lines(tmp_path):
    log = tmp_path / "x.log"
    log.write_text("one\ntwo\nthree\n")
    assert processes.tail(log, lines=2) == "two\nthree"


def test_tail_leaves_out_what_was_there_before(tmp_path):
    log = tmp_path / "x.log"
    log.write_text("one\ntwo\nthree\n")
    assert processes.tail(log, after_byte=len("one\ntwo\n")) == "three"


def test_tail_of_nothing_is_empty(tmp_path):
    assert processes.tail(tmp_path / "x.log") == ""
