"""What pods take up in a sequence besides what their containers request, made by chance: of the whole pod, and while
they are resized in place."""

from random import Random
from typing import Any

import msgspec

from dsched.arithmetic import requests
from dsched.model import quantity
from dsched.model.pod import Pod

Json = dict[str, Any]

LEVEL, RESIZED = 0.07, 0.25
"""How often pods request something as a whole; and pods that run are being resized."""
PENDING = ("Infeasible", "Deferred", "")


def of_the_pod(chance: Random, spec: Json, cpu: int, memory: int) -> None:
    """Have a pod request as a whole what its container does, or somewhat more."""
    more = chance.choice([0, 0, 100, 700])
    spec["resources"] = {"requests": {"cpu": f"{cpu + more}m", "memory": f"{memory + chance.choice([0, 300])}Mi"}}


def cover_containers(spec: Json) -> None:
    """A pod that requests something as a whole requests no less than its containers do."""
    needed = requests.of_containers(msgspec.convert({"spec": spec}, Pod))
    for name, amount in spec.get("resources", {}).get("requests", {}).items():
        if quantity.nano(amount) < needed.get(name, 0):
            spec["resources"]["requests"][name] = f"{quantity.milli(needed[name])}m"


def told_by_the_kubelet(chance: Random) -> Json:
    """What the status of a pod that runs says of its size, whatever its spec requests by now."""
    has = chance.randrange(50, 1800)
    given = has + chance.choice([0, 0, -30, 200])
    container: Json = {"name": "main", "image": "nginx", "imageID": "", "ready": True, "restartCount": 0}
    container["resources"] = {"requests": {"cpu": f"{has}m", "memory": f"{has}Mi"}}
    if chance.random() < 0.8:
        container["allocatedResources"] = {"cpu": f"{given}m", "memory": f"{given}Mi"}
    found: Json = {"containerStatuses": [container]}
    if reason := chance.choice(PENDING):
        found["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    return found
