from tests.integration.leader.conftest import check, rig

__all__ = ["check", "rig"]
