"""How Celery is used: its settings, the same in the leader that sends and in the workers that take.

Settings answer to known failure modes of Celery on Redis: no result backend (replies go to the leader's own lists),
nothing acknowledged late and no redelivery waited for (the record in Redis is the truth, a message is a hint), nor any
account kept of what is acknowledged (an acknowledgement that fails while Redis restarts would take the worker's only
place for a message, for ever), one message prefetched, sockets that notice a dead peer within seconds, and keys under
the system's own prefix.
"""

from typing import Any

from dsched import keepalive
from dsched.model.messages import BIND, BINDERS, EVALUATE, EVALUATORS
from dsched.state import location
from dsched.state.client import ASKING_SENTINELS, CONNECT_TIMEOUT_S, prefix

WRONG_TYPE = "WRONGTYPE"
"""How Redis' error begins where a key holds something else than a list."""
CONNECTING = {"interval_start": 0.1, "interval_step": 0.1, "interval_max": 0.5}
"""How long is waited before connecting again, how much longer each time, and at most; Celery would wait 2 s, 4 s, …"""


def own_queue(worker: str) -> str:
    """The queue that only this worker takes from. Source: celery/utils/nodenames.py ``worker_direct``."""
    return f"{worker}.dq2"


def queue_keys(name: str, queue: str) -> list[str]:
    """The Redis keys of a queue of the system called ``name``, one for each priority; ours are all sent with the first.

    Source: kombu/transport/redis.py ``Channel._q_for_pri``.
    """
    return [f"{prefix(name)}celery:{queue}{priority}" for priority in ("", "\x06\x163", "\x06\x166", "\x06\x169")]


def celery_settings(redis_url: str, name: str) -> dict[str, Any]:
    """Settings for a Celery app of the system called ``name``.

    Raises:
        StateError: the URL cannot be read.
    """
    found = location.read(redis_url)
    sentinel: dict[str, Any] = {}
    if found.sentinels:
        tls = {"ssl": True, **found.tls_options} if found.tls else {}
        asking = {**ASKING_SENTINELS, **found.sentinel_options, **tls}
        sentinel = {"master_name": found.master, "sentinel_kwargs": asking}
    return {
        **location.broker(redis_url),
        "broker_transport_options": {
            "global_keyprefix": prefix(name) + "celery:",
            "socket_timeout": 10.0,
            "socket_connect_timeout": CONNECT_TIMEOUT_S,
            "socket_keepalive": True,
            "socket_keepalive_options": keepalive.OPTIONS,
            "health_check_interval": 3,
            "retry_on_timeout": False,
            **CONNECTING,
            "ack_emulation": False,
            **sentinel,
        },
        "broker_connection_retry_on_startup": True,
        "result_backend": None,
        "task_ignore_result": True,
        "task_serializer": "msgpack",
        "accept_content": ["msgpack"],
        "task_acks_late": False,
        "task_routes": {EVALUATE: {"queue": EVALUATORS}, BIND: {"queue": BINDERS}},
        "task_create_missing_queues": True,
        "worker_direct": True,
        "worker_prefetch_multiplier": 1,
        "worker_enable_remote_control": False,
        "worker_send_task_events": False,
        "worker_hijack_root_logger": False,
        "worker_cancel_long_running_tasks_on_connection_loss": True,
        "task_soft_time_limit": 60,
        "task_time_limit": 90,
        "enable_utc": True,
    }
