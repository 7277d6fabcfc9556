"""What comes from outside is read in any thread, and harms nobody else."""

import gc
import subprocess
import sys
import weakref

import msgspec
import pytest

from dsched.model import reading

AT_ONCE = """
import sys, threading
import msgspec
from dsched.model import reading

sys.setswitchinterval(1e-6)

def kind():
    class Inner(msgspec.Struct):
        number: "int" = 0
        text: "str | None" = None
        texts: "dict[str, str]" = {}
    class Outer(msgspec.Struct):
        inner: Inner | None = None
        numbers: "list[int] | None" = None
        texts: "dict[str, int] | None" = None
    return Outer

kinds = [kind() for _ in range(400)]
reading.prepare()
for each in kinds:
    start = threading.Barrier(6)
    def read():
        start.wait()
        msgspec.json.decode(b'{"inner": {"number": 1, "text": "a"}, "numbers": [1], "texts": {"a": 1}}', type=each)
    threads = [threading.Thread(target=read) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("read")
"""


def test_threads_may_be_the_first_to_read_a_type_at_the_same_time() -> None:
    done = subprocess.run([sys.executable, "-c", AT_ONCE], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "read\n"), done.stderr


def test_a_type_that_cannot_be_read_is_passed_over() -> None:
    class Either(msgspec.Struct):
        pass

    class Other(msgspec.Struct):
        pass

    class Unreadable(msgspec.Struct):
        one: Either | Other

    with pytest.raises(TypeError):
        msgspec.json.Decoder(Unreadable)
    reading.prepare()


def test_what_is_not_utf_8_is_no_other_error() -> None:
    with pytest.raises(msgspec.DecodeError, match="UTF-8"):
        reading.decoded(msgspec.json.Decoder(str).decode, b'"\xff"')


class _Ring:
    """Only the collector of cycles finds it."""

    def __init__(self) -> None:
        self.itself = self


def _recurse(left: int, done: list[bool]) -> None:
    if left:
        _recurse(left - 1, done)
    else:
        done.append(True)


def test_what_ends_in_the_meantime_ends_properly_whatever_is_nested_how_deep() -> None:
    before, done = gc.get_threshold(), list[bool]()
    attempts = range(sys.getrecursionlimit() - 300, sys.getrecursionlimit() + 10)
    gc.freeze()  # what other tests have left is not looked through each time
    try:
        for containers in attempts:
            gc.collect()
            weakref.finalize(_Ring(), _recurse, 30, done)
            gc.set_threshold(containers)  # so that the collector looks at this depth
            with pytest.raises(msgspec.DecodeError, match="nested too deep"):
                reading.decoded(msgspec.json.Decoder().decode, b"[" * 2 * sys.getrecursionlimit())
            gc.set_threshold(*before)
        gc.collect()
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
    assert len(done) == len(attempts)
