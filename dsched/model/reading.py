"""What comes from outside, decoded: with one error for all that may be wrong with it, and in any thread.

msgspec raises Python's UnicodeDecodeError, which is none of its own, where a text is not UTF-8 (until 0.22), and its
RecursionError where values are nested deeper than some 900 levels. At that depth nobody else may run: a collector of
cycles that Python calls there ends others' connections and weak references half-way, as their code has no frame left to
run in. And msgspec finds out how a type is read when it first reads one, which two threads must not do at once: the
process ends with a segmentation fault.
"""

import contextlib
from collections.abc import Callable
from typing import TypeVar

import msgspec

from dsched import garbage

Value = TypeVar("Value")


def decoded(decode: Callable[[bytes], Value], raw: bytes) -> Value:
    """What a decoder makes of it.

    Raises:
        msgspec.DecodeError: it is none of what the decoder reads; msgspec.ValidationError: of another shape.
    """
    try:
        with garbage.not_looked_for():
            return decode(raw)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(f"a text is not UTF-8: {error}") from error
    except RecursionError as error:
        raise msgspec.DecodeError("nested too deep") from error


def prepare() -> None:
    """Find out how all types there are so far are read; before threads that read are started."""
    found: list[type] = [msgspec.Struct]
    while found:
        kinds: list[type] = found.pop().__subclasses__()
        found += kinds
        for kind in kinds:
            with contextlib.suppress(TypeError):  # it can be written, but not read
                msgspec.json.Decoder(kind)
