"""Regular expressions as RE2 has them, in time that grows with text times pattern and never faster.

Python's ``re`` reads another language, and looks back: ``(a|aa)+$`` would hold up a scheduler for years.
Go: ``regexp``.
"""

from functools import lru_cache

from dsched.cel.regex.characters import PatternError
from dsched.cel.regex.machine import Meter, Pattern, assemble
from dsched.cel.regex.parsing import parse

__all__ = ["Meter", "Pattern", "PatternError", "compile"]


@lru_cache(maxsize=256)
def compile(pattern: str) -> Pattern:
    """The pattern, ready to be searched for.

    Raises:
        PatternError: it is none, or too large.
    """
    return Pattern(assemble(parse(pattern)))
