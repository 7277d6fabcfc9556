"""Extenders of a sequence, made by chance: what they have a say in, and what they say.

Of a pod and a node an extender always says the same, to whoever asks: it hangs on the pod's name and label, the node's
name and the seed alone.
"""

import json
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from tests.extender import Answer, Refusal, TestExtender, names
from tests.parity.sequence_settings import CARD

Json = dict[str, Any]

VERBS = ("filter", "prioritize", "preempt")
REASONS = ("no licence", "too warm", "Insufficient cpu", "")
NOWHERE, NOBODY = "nowhere", "uid-nobody"
"""A node and a pod that are not there."""


def asked(server: TestExtender) -> Counter[str]:
    """What a server was asked since somebody took it: the verb, the pod, the nodes and the victims by node, in no
    order."""
    with server.lock:
        questions = list(server.asked)
        server.asked.clear()
    return Counter(_plain(verb, question) for verb, question in questions)


def _plain(verb: str, question: Json) -> str:
    if "PodUID" in question:
        return f"{verb} {question['PodName']} {question['Node']}"
    pod = question["Pod"]["metadata"]["name"]
    if "NodeNames" in question:
        whole = (question["Nodes"] or {}).get("items") or ()
        return f"{verb} {pod} {sorted(names(question))} {sorted(map(_shown, whole))}"
    candidates = sorted(_candidates(question).items())
    victims = {name: (sorted(_uids(each)), each["NumPDBViolations"]) for name, each in candidates}
    return f"{verb} {pod} {victims}"


def _shown(node: Json) -> str:
    """What a question says of a whole node."""
    allocatable = node.get("status", {}).get("allocatable", {})
    return json.dumps([node["metadata"]["name"], node["metadata"].get("labels") or {}, allocatable], sort_keys=True)


def _candidates(question: Json) -> dict[str, Json]:
    """Victims by node."""
    return question["NodeNameToVictims"] or question["NodeNameToMetaVictims"] or {}


def _uids(victims: Json) -> list[str]:
    return [each.get("UID") or each["metadata"]["uid"] for each in victims["Pods"] or ()]


class Extenders:
    """One to three.

    Attributes:
        settings: as a configuration has them, but for their addresses.
        bind: binds the pod that a question names, and says why not; None where who asks does so, once an extender has
            agreed.
    """

    def __init__(self, chance: Random) -> None:
        self._seed = chance.randrange(1 << 32)
        self._odd = chance.random() < 0.5
        self.settings = [self._one(chance, number) for number in range(chance.choice([1, 1, 2, 3]))]
        self.bind: Callable[[Json], str] | None = None
        if chance.random() < 0.3:
            number = chance.randrange(len(self.settings))
            self.settings[number]["bindVerb"] = f"bind-{number}"

    def _one(self, chance: Random, number: int) -> Json:
        verbs = chance.sample(VERBS, chance.choice([1, 2, 2, 3]))
        found: Json = {f"{verb}Verb": f"{verb}-{number}" for verb in verbs}
        if "prioritize" in verbs:
            found["weight"] = chance.choice([1, 1, 2, 7])
        found["nodeCacheCapable"] = chance.random() < 0.6
        found["ignorable"] = chance.random() < 0.4
        if number == 0 and chance.random() < 0.4:  # one may have it
            found["managedResources"] = [{"name": CARD, "ignoredByScheduler": chance.random() < 0.5}]
        return found

    def served_by(self, server: TestExtender) -> list[Json]:
        """Has a server answer for them; says how a configuration finds them there."""
        answers: dict[str, Answer] = {
            "filter": self._filter,
            "prioritize": self._prioritize,
            "preempt": self._preempt,
            "bind": self._bind,
        }
        for each in self.settings:
            for verb in answers:
                if f"{verb}Verb" in each:
                    path = each[f"{verb}Verb"]
                    server.answers[path] = lambda question, path=path, verb=verb: answers[verb](path, question)
        return [{"urlPrefix": server.url, **each} for each in self.settings]

    def _says(self, path: str, question: Json, *about: str) -> Random:
        """What is up to chance, the same whenever it is asked."""
        pod = question["Pod"]["metadata"]
        return Random(f"{self._seed} {path} {pod['name']} {pod['labels'].get('app')} {' '.join(about)}")

    def _fails(self, chance: Random) -> Any:
        if not self._odd or chance.random() < 0.9:
            return None
        return chance.choice([Refusal(500), Refusal(404)])

    def _filter(self, path: str, question: Json) -> Any:
        of_pod = self._says(path, question)
        if failure := self._fails(of_pod):
            return failure
        strict = of_pod.choice([0.05, 0.25, 0.25, 0.6, 1.0])
        kept, failed, unresolvable = [], {}, {}
        for name in names(question):
            chance = self._says(path, question, name)
            if chance.random() >= strict:
                kept.append(name)
                if not self._odd or chance.random() >= 0.03:
                    continue
            among = chance.choice([failed, failed, unresolvable, {}])
            among[name] = chance.choice(REASONS)
        if self._odd and of_pod.random() < 0.05:
            of_pod.choice([failed, unresolvable])[NOWHERE] = of_pod.choice(REASONS)
        if self._odd and of_pod.random() < 0.03:
            kept.append(NOWHERE)
        answer: Json = {"FailedNodes": failed, "FailedAndUnresolvableNodes": unresolvable}
        if self._odd and of_pod.random() < 0.04:
            answer["Error"] = "the extender is out of order"
        whole = question["NodeNames"] is None
        if whole or (self._odd and of_pod.random() < 0.2):
            given = {each["metadata"]["name"]: each for each in question["Nodes"]["items"]} if whole else {}
            kept = [name for name in kept if name != NOWHERE]
            return answer | {"Nodes": {"items": [self._given_back(path, question, name, given) for name in kept]}}
        return answer | {"NodeNames": kept}

    def _given_back(self, path: str, question: Json, name: str, given: Json) -> Json:
        """A whole node: as it came, as its name alone, or as another one of that name."""
        chance = Random(f"{self._seed} {path} given back")
        how = chance.choice(["as it came", "as it came", "by name", "changed"])
        if how == "by name" or name not in given:
            return {"metadata": {"name": name}}
        node: Json = json.loads(json.dumps(given[name]))
        chance = self._says(path, question, name, "given back")
        if how == "changed" and chance.random() < 0.7:
            labels = node["metadata"].setdefault("labels", {})
            allocatable = node.setdefault("status", {}).setdefault("allocatable", {})
            for key in chance.sample(sorted(labels), min(len(labels), chance.choice([0, 1, 2]))):
                if chance.random() < 0.4:
                    del labels[key]
                else:
                    labels[key] = chance.choice(["elsewhere", "a", "b", ""])
            for resource in chance.sample(sorted(allocatable), min(len(allocatable), chance.choice([0, 0, 1, 2]))):
                allocatable[resource] = chance.choice(["0", "3", "2k", "1Gi"])
            if chance.random() < 0.3:
                taint = {"key": "odd", "value": "yes", "effect": chance.choice(["PreferNoSchedule", "NoSchedule"])}
                node.setdefault("spec", {}).setdefault("taints", []).append(taint)
        return node

    def _prioritize(self, path: str, question: Json) -> Any:
        of_pod = self._says(path, question)
        if failure := self._fails(of_pod):
            return failure
        found = []
        for name in names(question):
            chance = self._says(path, question, name)
            score = chance.randint(0, 10)
            if self._odd and chance.random() < 0.05:
                score = chance.choice([-3, 11, 100])
            found.append({"Host": name, "Score": score})
        if self._odd and of_pod.random() < 0.1:
            found[-1:] = of_pod.choice([[], [found[-1], found[-1]], [{"Host": NOWHERE, "Score": 10}]])
        return found

    def _preempt(self, path: str, question: Json) -> Any:
        of_pod = self._says(path, question)
        if failure := self._fails(of_pod):
            return failure
        found: Json = {}
        for name, victims in _candidates(question).items():
            chance = self._says(path, question, name)
            if chance.random() < 0.25:
                continue
            uids = _uids(victims)
            violations = victims["NumPDBViolations"]
            if self._odd and chance.random() < 0.2:
                uids = chance.choice([uids[:1], uids[1:], uids[::-1], [*uids, NOBODY]])
                violations = chance.choice([violations, 0, 3])
            found[name] = {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": violations}
        if self._odd and of_pod.random() < 0.03:
            found[NOWHERE] = {"Pods": [], "NumPDBViolations": 0}
        return {"NodeNameToMetaVictims": found}

    def _bind(self, path: str, question: Json) -> Any:
        chance = Random(f"{self._seed} {path} {question['PodName']} {question['Node']}")
        if failure := self._fails(chance):
            return failure
        if self._odd and chance.random() < 0.15:
            return {"Error": "the extender does not bind this pod"}
        return {"Error": self.bind(question)} if self.bind is not None else {}
