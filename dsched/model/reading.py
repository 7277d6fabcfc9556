"""What comes from outside, decoded: with one error for all that may be wrong with it.

msgspec raises Python's UnicodeDecodeError, which is none of its own, where a text is not UTF-8.
"""

from collections.abc import Callable
from typing import TypeVar

import msgspec

Value = TypeVar("Value")


def decoded(decode: Callable[[bytes], Value], raw: bytes) -> Value:
    """What a decoder makes of it.

    Raises:
        msgspec.DecodeError: it is none of what the decoder reads; msgspec.ValidationError: of another shape.
    """
    try:
        return decode(raw)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(f"a text is not UTF-8: {error}") from error
