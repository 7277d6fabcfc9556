"""What must hold of a settled cluster, checked from ``dsched get … -o json`` alone.

Nothing of dsched is used: amounts, selectors and taints are read anew, so that a mistake there does not hide itself.
What the checker does not know it refuses to judge.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

Json = Mapping[str, Any]
Amounts = dict[str, Fraction]

UNITS = {"": Fraction(1), "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000)}
UNITS |= {unit: Fraction(1000**power) for power, unit in enumerate("kMGTPE", 1)}
UNITS |= {unit + "i": Fraction(1024**power) for power, unit in enumerate("KMGTPE", 1)}
UNKNOWN = ("topologySpreadConstraints", "volumes", "resourceClaims", "resources")
"""Fields of a pod's spec that the checker cannot judge."""
ENDED = ("Succeeded", "Failed")


def amount(text: str | int) -> Fraction:
    """What a quantity stands for: ``500m``, ``1.5Gi``, ``2e3``."""
    found = re.fullmatch(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d+)|([A-Za-z]*))", str(text))
    if found is None:
        raise ValueError(f"{text!r} is no quantity")
    number, exponent, unit = found.groups()
    return Fraction(number) * (Fraction(10) ** int(exponent) if exponent else UNITS[unit or ""])


@dataclass
class Node:
    """A node and what is on it, and the pending pods that it is promised to."""

    json: Json
    used: Amounts = field(default_factory=lambda: defaultdict(Fraction))
    ports: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    promised: list[Json] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.json["metadata"]["name"])

    @property
    def labels(self) -> Mapping[str, str]:
        labels: Mapping[str, str] = self.json["metadata"].get("labels", {})
        return labels

    @property
    def has(self) -> Amounts:
        given = self.json.get("status", {}).get("allocatable", {})
        return defaultdict(Fraction, {resource: amount(text) for resource, text in given.items()})

    def put(self, pod: Json) -> None:
        for resource, wanted in requests(pod).items():
            self.used[resource] += wanted
        self.ports.update(host_ports(pod))

    def over(self) -> list[str]:
        """Resources of which more is used than there is, and host ports taken twice."""
        has = self.has
        over = [f"{name} {used} of {has[name]}" for name, used in sorted(self.used.items()) if used > has[name]]
        return over + [f"host port {port} taken {times} times" for port, times in self.ports.items() if times > 1]

    def fits(self, pod: Json) -> bool:
        """Whether a pod could go here as things stand, beside others of at least its priority that the node is promised
        to: they need not fit themselves by now, and keep what they wait for all the same."""
        has, beside = self.has, self
        if self.promised:
            beside = Node(self.json, self.used.copy(), self.ports.copy())
            for other in self.promised:
                if other is not pod and priority(other) >= priority(pod):
                    beside.put(other)
        room = all(beside.used[name] + wanted <= has[name] for name, wanted in requests(pod).items())
        return room and not any(beside.ports[port] for port in host_ports(pod)) and not self.refuses(pod)

    def refuses(self, pod: Json) -> str:
        """Why the node is none of those that the pod may go to, whatever is free there; empty when it is."""
        spec = pod["spec"]
        selector = spec.get("nodeSelector", {})
        if any(self.labels.get(key) != value for key, value in selector.items()):
            return "node selector"
        affinity = spec.get("affinity", {}).get("nodeAffinity", {})
        required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
        if required is not None and not any(self._matches(term) for term in required["nodeSelectorTerms"]):
            return "node affinity"
        for taint in self._taints():
            if not any(tolerates(each, taint) for each in spec.get("tolerations", ())):
                return f"taint {taint['key']}"
        return ""

    def _taints(self) -> list[Json]:
        spec = self.json.get("spec", {})
        cordon = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
        taints = [*spec.get("taints", ()), *(cordon if spec.get("unschedulable") else [])]
        return [taint for taint in taints if taint["effect"] in ("NoSchedule", "NoExecute")]

    def _matches(self, term: Json) -> bool:
        if set(term) != {"matchExpressions"}:
            raise ValueError(f"the checker does not know the node selector term {term}")
        return all(self._meets(each) for each in term["matchExpressions"])

    def _meets(self, expression: Json) -> bool:
        operator, value = expression["operator"], self.labels.get(expression["key"])
        if operator == "In":
            return value in expression["values"]
        if operator == "NotIn":
            return value not in expression["values"]
        if operator in ("Exists", "DoesNotExist"):
            return (value is not None) == (operator == "Exists")
        raise ValueError(f"the checker does not know the operator {operator}")


def requests(pod: Json) -> Amounts:
    """What a pod takes of a node, one of ``pods`` included."""
    spec = pod["spec"]
    total: Amounts = defaultdict(Fraction, {"pods": Fraction(1)})
    for container in spec["containers"]:
        for resource, text in container.get("resources", {}).get("requests", {}).items():
            total[resource] += amount(text)
    for container in spec.get("initContainers", ()):
        if container.get("restartPolicy"):
            raise ValueError("the checker does not know sidecars")
        for resource, text in container.get("resources", {}).get("requests", {}).items():
            total[resource] = max(total[resource], amount(text))
    for resource, text in spec.get("overhead", {}).items():
        total[resource] += amount(text)
    return total


def priority(pod: Json) -> int:
    """A pod's priority, 0 where it has none."""
    return int(pod["spec"].get("priority") or 0)


def host_ports(pod: Json) -> list[tuple[str, str, int]]:
    """Address, protocol and number of the host ports a pod takes."""
    ports = [port for container in pod["spec"]["containers"] for port in container.get("ports", ())]
    return [
        (port.get("hostIP", "0.0.0.0"), port.get("protocol", "TCP"), port["hostPort"])
        for port in ports
        if port.get("hostPort")
    ]


def tolerates(toleration: Json, taint: Json) -> bool:
    """Whether a toleration covers a taint."""
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("key") not in (None, "", taint["key"]):
        return False
    return toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", "")


@dataclass(frozen=True)
class Finding:
    """What is wrong with the cluster, and how its pods stand."""

    problems: list[str]
    bound: int
    pending: int


def check(nodes: Iterable[Json], pods: Iterable[Json]) -> Finding:
    """Judge a settled cluster: nothing over its allocatable, nothing where it must not be, and nothing pending that
    fits somewhere or that does not say why it fits nowhere.

    Raises:
        ValueError: an object asks for something that the checker does not know.
    """
    by_name = {node["metadata"]["name"]: Node(node) for node in nodes}
    problems: list[str] = []
    bound, pending = [], []
    for pod in pods:
        _refuse_unknown(pod)
        if pod.get("status", {}).get("phase") in ENDED:
            continue
        (bound if pod["spec"].get("nodeName") else pending).append(pod)
    for pod in bound:
        node = by_name.get(pod["spec"]["nodeName"])
        if node is None:
            problems.append(f"{_key(pod)}: bound to {pod['spec']['nodeName']}, which is not there")
            continue
        node.put(pod)
        if why := node.refuses(pod):
            problems.append(f"{_key(pod)}: bound to {node.name} against its {why}")
    problems += [f"{node.name}: {what}" for node in by_name.values() for what in node.over()]
    for pod in pending:
        promised = by_name.get(pod.get("status", {}).get("nominatedNodeName", ""))
        if promised is not None:
            promised.promised.append(pod)
    for pod in pending:
        if not pod["spec"].get("schedulingGates"):
            problems += [f"{_key(pod)}: {what}" for what in _unjustified(pod, by_name)]
    return Finding(problems, len(bound), len(pending))


def _unjustified(pod: Json, nodes: Mapping[str, Node]) -> list[str]:
    """What is wrong with a pod being pending."""
    where = next((node.name for node in nodes.values() if node.fits(pod)), None)
    said = [each for each in pod["status"].get("conditions", ()) if each["type"] == "PodScheduled"]
    if [(each["status"], each.get("reason")) for each in said] != [("False", "Unschedulable")]:
        fits = [] if where is None else [f"pending, but fits on {where}"]
        return [*fits, f"pending without the condition that says so: {said}"]
    message = said[0]["message"]
    wrong = [] if where is None else [f"pending, but fits on {where}: {message}"]
    reasons = re.fullmatch(rf"0/{len(nodes)} nodes are available: (.*)\.", message.partition(" preemption: ")[0])
    counts = [re.fullmatch(r"(\d+) \S.*", each) for each in reasons[1].split(", ")] if reasons else [None]
    if any(found is None or not 0 < int(found[1]) <= len(nodes) for found in counts):
        wrong.append(f"its reason is not of the form expected: {message}")
    return wrong


def _refuse_unknown(pod: Json) -> None:
    spec = pod["spec"]
    unknown = [name for name in UNKNOWN if spec.get(name)]
    unknown += [name for name in ("podAffinity", "podAntiAffinity") if spec.get("affinity", {}).get(name)]
    if unknown:
        raise ValueError(f"{_key(pod)}: the checker does not know {', '.join(unknown)}")


def _key(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
