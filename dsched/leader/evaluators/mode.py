"""Where a leader has pods evaluated, as its option says it: for whoever starts leaders as well."""

from enum import StrEnum


class Mode(StrEnum):
    """Where classes are judged."""

    AUTO = "auto"
    LOCAL = "local"
    DISTRIBUTED = "distributed"
