import os
import signal
import subprocess
import sys

import pytest

from dsched.clock import ManualClock
from dsched.errors import DschedError
from dsched.supervisor import lock


def test_nobody_holds_a_lock_that_was_never_taken(tmp_path):
    assert lock.holder(tmp_path) is None


def test_the_holder_is_this_process(tmp_path):
    with lock.held(tmp_path, ManualClock()):
        found = lock.holder(tmp_path)
        assert found is not None
        assert found.pid == os.getpid()
        assert found.alive


def test_the_lock_is_free_afterwards(tmp_path):
    with lock.held(tmp_path, ManualClock()):
        pass
    assert lock.holder(tmp_path) is None


def test_a_second_supervisor_is_refused_and_told_what_to_do(tmp_path):
    with (
        lock.held(tmp_path, ManualClock()),
        pytest.raises(DschedError, match=rf"supervisor pid {os.getpid()}.*dsched down"),
        lock.held(tmp_path, ManualClock()),
    ):
        pass


def test_the_first_keeps_the_lock_when_a_second_is_refused(tmp_path):
    with lock.held(tmp_path, ManualClock()):
        with pytest.raises(DschedError), lock.held(tmp_path, ManualClock()):
            pass
        assert lock.holder(tmp_path) is not None


def test_what_is_left_of_a_dead_system_is_waited_for_but_not_for_ever(tmp_path):
    clock = ManualClock()
    with lock.held(tmp_path, clock) as descriptor:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b'{"pid": 4194305, "birth": 1}', 0)
        began = clock.monotonic()
        with pytest.raises(DschedError, match="still locked by what is left"), lock.held(tmp_path, clock):
            pass
        assert clock.monotonic() - began >= lock.CLEAN_UP_S


@pytest.mark.skipif(lock.birth_of(os.getpid()) == 0, reason="needs /proc")
def test_another_process_with_the_same_number_is_not_the_holder():
    assert not lock.Holder(os.getpid(), lock.birth_of(os.getpid()) + 1).alive


@pytest.mark.skipif(lock.birth_of(os.getpid()) == 0, reason="needs /proc")
def test_one_that_was_killed_is_not_alive_though_it_takes_the_kernel_long_to_end_it():
    much = "kept = bytearray(300_000_000); kept[::4096] = b'1' * len(kept[::4096]); print(flush=True); input()"
    command = [sys.executable, "-c", much]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        holder = lock.Holder(child.pid, lock.birth_of(child.pid))
        assert holder.alive
        os.kill(child.pid, signal.SIGKILL)
        assert not holder.alive


def test_a_holder_that_has_not_said_who_it_is_is_not_alive():
    assert not lock.UNKNOWN.alive
