from tests.acceptance.fixtures import make_system, redis_program, shop, system

__all__ = ["make_system", "redis_program", "shop", "system"]
