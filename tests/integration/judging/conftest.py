"""Recordings of a leader that is driven step by step."""

from tests.integration.recording.conftest import make_rig, tape

__all__ = ["make_rig", "tape"]
