"""What Redis says of the health of leaders and workers; asked by ``/readyz`` and by ``dsched healthcheck`` alike."""

from collections.abc import Sequence

from dsched.state import lease, workers
from dsched.state import time as redis_time
from dsched.state.client import UNAVAILABLE, Store
from dsched.state.workers import FORGOTTEN_AFTER_MS, Worker


def no_leader(store: Store) -> str:
    """Why leadership is not well, empty when it is."""
    return "" if lease.holder(store) is not None else "nobody holds the leader's lease"


def idle(seen: Sequence[Worker], kind: str, host: str, now_ms: int, max_age_s: float) -> str:
    """Why the workers of this kind on the host are not well, empty when they all are.

    Of workers that share a host, those that have been silent for long are taken to be gone.
    """
    here = [worker for worker in seen if worker.kind == kind and worker.name.rpartition("@")[2] == host]
    present = [worker for worker in here if now_ms - worker.last_seen_ms <= FORGOTTEN_AFTER_MS]
    if not present:
        return f"no {kind} on {host} has run a task within {FORGOTTEN_AFTER_MS / 1000:g} s"
    return "; ".join(filter(None, (late(worker, now_ms, max_age_s) for worker in present)))


def late(worker: Worker, now_ms: int, max_age_s: float) -> str:
    """Why a worker is not well, empty when it has run a task lately; the leader pings it every 2 s."""
    age_s = (now_ms - worker.last_seen_ms) / 1000
    return f"{worker.name} last ran a task {age_s:.0f} s ago" if age_s > max_age_s else ""


def silent(store: Store, name: str, max_age_s: float) -> str:
    """Why one worker is not well."""
    try:
        now_ms = redis_time.now_ms(store)
        found = next((worker for worker in workers.read(store) if worker.name == name), None)
    except UNAVAILABLE as error:
        return f"Redis does not answer: {error}"
    return f"{name} has not run a task" if found is None else late(found, now_ms, max_age_s)
