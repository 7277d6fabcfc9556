import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from dsched import config
from dsched.conformance import configuration
from tests.unit.config.files import file, with_plugins


def test_every_vector_passes(shared: Path):
    differences, vectors = [], 0
    with gzip.open(shared / "conformance" / "configuration.jsonl.gz", "rt") as lines:
        for line in lines:
            vector = json.loads(line)
            vectors += 1
            differences += [f"{vector['case']['name']}: {found}" for found in check(vector)]
    assert differences == []
    assert vectors == 390


def test_every_vector_passes_as_yaml(shared: Path):
    differences, vectors = [], 0
    with gzip.open(shared / "conformance" / "configuration.jsonl.gz", "rt") as lines:
        for line in lines:
            vector = json.loads(line)
            try:
                fields = json.loads(vector["case"]["configuration"], object_pairs_hook=without_repeated_keys)
            except ValueError:
                continue  # broken JSON, which has no YAML twin
            vectors += 1
            vector["case"]["configuration"] = yaml.safe_dump(fields)
            differences += [f"{vector['case']['name']}: {found}" for found in check(vector)]
    assert differences == []
    assert vectors > 350


def without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError
    return dict(pairs)


def check(vector: dict[str, Any]) -> list[str]:
    return configuration.check(vector["case"], vector["expect"])


def taken(text: str) -> dict[str, Any]:
    """The vector that dsched itself would record of a text that is taken."""
    loaded = config.load(text)
    plugins = {
        profile.scheduler_name: {
            point: [f"{ref.name}={ref.weight}" if point == "score" else ref.name for ref in refs]
            for point, refs in profile.plugins.items()
        }
        for profile in loaded.profiles
    }
    return {
        "case": {"name": "made-up", "configuration": text},
        "expect": {"decoded": True, "accepted": True, "plugins": plugins, "completed": config.completed(loaded)},
    }


def test_a_vector_that_agrees_has_no_differences():
    assert check(taken(file(percentageOfNodesToScore=5))) == []


def test_dynamic_resources_is_left_out_on_both_sides():
    vector = taken(file())
    vector["expect"]["plugins"]["default-scheduler"]["filter"].append("DynamicResources")
    vector["expect"]["completed"]["profiles"][0]["pluginConfig"].append({"name": "DynamicResources", "args": {}})
    assert check(vector) == []


@pytest.mark.parametrize(
    ("expect", "difference"),
    [
        ({"decoded": False, "accepted": False, "errors": ["json: broken"]}, "verdict: found taken, expected decode"),
        ({"accepted": False, "errors": ["parallelism: x"]}, "verdict: found taken, expected validation"),
        ({"profileError": "creating profile for scheduler name x: y"}, "verdict: found taken, expected profile"),
    ],
)
def test_a_file_taken_that_should_not_be(expect: dict[str, Any], difference: str):
    vector = taken(file())
    vector["expect"] |= expect
    assert check(vector)[0].startswith(difference)


def test_a_file_refused_that_should_be_taken():
    vector = taken(file())
    vector["case"]["configuration"] = file(parallelism=0)
    assert check(vector)[:2] == [
        "verdict: found validation, expected taken",
        "  found: parallelism: Invalid value: 0: should be an integer value greater than zero",
    ]


def test_differences_are_named_by_place():
    vector = taken(file())
    expect = vector["expect"]
    expect["plugins"]["default-scheduler"]["score"][0] = "TaintToleration=4"
    expect["completed"]["parallelism"] = 8
    expect["completed"]["profiles"][0]["pluginConfig"][0]["args"]["minCandidateNodesAbsolute"] = 1
    del expect["completed"]["enableProfiling"]
    assert [line.partition(":")[0] for line in check(vector)] == [
        "plugins.default-scheduler.score",
        "completed.enableProfiling",
        "completed.parallelism",
        "completed.profiles[0].args.DefaultPreemption",
    ]


def test_validation_errors_are_compared_as_a_multiset_of_paths():
    case = {"name": "made-up", "configuration": file(parallelism=0)}
    expect = {
        "decoded": True,
        "accepted": False,
        "errors": ["parallelism: other words", "extenders: x", "extenders: y"],
    }
    assert configuration.check(case, expect) == ["errors: extenders is expected but not reported"] * 2
    assert configuration.check(case, expect | {"errors": []}) == ["errors: parallelism is reported but not expected"]


@pytest.mark.parametrize(
    ("message", "differences"),
    [
        ('creating profile for scheduler name default-scheduler: FilterPlugin "Nope" does not exist', 0),
        ('creating profile for scheduler name default-scheduler: plugin "Nope" does not extend FilterPlugin plugin', 0),
        ('creating profile for scheduler name other: FilterPlugin "Nope" does not exist', 1),
        ('creating profile for scheduler name other: initializing plugin "NodeResourcesFit": x', 2),
        ("creating profile for scheduler name default-scheduler: at least one bind plugin is needed", 1),
    ],
)
def test_profile_errors_are_compared_by_profile_and_plugin(message: str, differences: int):
    case = {"name": "made-up", "configuration": with_plugins(filter={"enabled": ["Nope"]})}
    expect = {"decoded": True, "accepted": True, "profileError": message}
    assert len(configuration.check(case, expect)) == differences


def test_the_completed_form_is_compared_for_profile_errors_too():
    text = with_plugins(filter={"enabled": ["Nope"]})
    completed = config.completed_document(text) | {"parallelism": 5}
    message = 'creating profile for scheduler name default-scheduler: FilterPlugin "Nope" does not exist'
    expect = {"decoded": True, "accepted": True, "profileError": message, "completed": completed}
    found = configuration.check({"name": "made-up", "configuration": text}, expect)
    assert found == ["completed.parallelism: found 16, expected 5"]
