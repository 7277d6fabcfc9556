"""All functions that a version of Kubernetes offers to expressions."""

from functools import lru_cache

from dsched.cel.library import (
    authorizer,
    conversions,
    formats,
    formatting,
    lists,
    networks,
    operators,
    optionals,
    quantities,
    regexes,
    semvers,
    strings,
    times,
    urls,
)
from dsched.cel.library.declarations import Overload

_ALWAYS = (
    operators,
    conversions,
    strings,
    formatting,
    regexes,
    times,
    lists,
    optionals,
    quantities,
    semvers,
    networks,
    urls,
    formats,
    authorizer,
)


@lru_cache(maxsize=8)
def of(minor: int) -> tuple[Overload, ...]:
    """The overloads of Kubernetes 1.``minor``, in the order in which they are tried."""
    versioned = lists.SINCE_36 if minor >= 36 else lists.UNTIL_35
    return tuple(each for library in _ALWAYS for each in library.OVERLOADS) + versioned
