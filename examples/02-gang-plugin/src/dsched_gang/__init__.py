"""Pods that are bound all together or not at all: a plugin for dsched."""

from dsched_gang.gang import Gang
from dsched_gang.plugin import GangPlugin

__all__ = ["Gang", "GangPlugin"]
