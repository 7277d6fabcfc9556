from tests.acceptance.fixtures import redis_program

__all__ = ["redis_program"]
