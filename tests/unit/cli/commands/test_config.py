"""``dsched config``."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from dsched import config
from dsched.cli.main import app
from dsched.config.feature_gates import DEFAULT, VERSIONS, features, parse_version
from dsched.errors import ConfigError

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DSCHED_CONFIG", raising=False)


def run(*words: object) -> Result:
    result = CliRunner().invoke(app, ["config", *map(str, words)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(text: str, name: str = "scheduler.yaml") -> Path:
        (tmp_path / name).write_text(HEAD + text)
        return tmp_path / name

    return write


def test_view_prints_the_completed_default() -> None:
    expected = config.completed(config.default(DEFAULT))
    assert yaml.safe_load(run("view").stdout) == expected
    assert json.loads(run("view", "-o", "json").stdout) == expected


def test_view_completes_a_file(write: Any) -> None:
    path = write("parallelism: 3\nprofiles: [{schedulerName: mine}]\n")
    answer = json.loads(run("view", "--config", path, "-o", "json").stdout)
    assert answer["parallelism"] == 3
    (profile,) = answer["profiles"]
    assert profile["schedulerName"] == "mine"
    assert "NodeResourcesFit" in [entry["name"] for entry in profile["pluginConfig"]]


def test_view_says_that_no_percentage_means_every_node(write: Any) -> None:
    note = "percentageOfNodesToScore is not set: dsched looks at every node"
    lines = run("view").stdout.splitlines()
    place = lines.index("percentageOfNodesToScore: 0")
    assert lines[place - 1].startswith(f"# {note}")
    as_json = run("view", "-o", "json")
    assert note in as_json.stderr
    for percentage in (0, 30):
        path = write(f"percentageOfNodesToScore: {percentage}\n")
        assert note not in run("view", "--config", path).output
        assert note not in run("view", "--config", path, "-o", "json").stderr


def test_what_view_prints_means_the_same_but_for_that_percentage(write: Any, tmp_path: Path) -> None:
    original = write("percentageOfNodesToScore: 40\nprofiles: [{schedulerName: a}, {schedulerName: b}]\n")
    shown = tmp_path / "shown.yaml"
    shown.write_text(run("view", "--config", original).stdout)
    texts = (shown.read_text(), original.read_text())
    assert len({config.load(text, features=DEFAULT).hash for text in texts}) == 1


def test_view_of_a_bad_file_is_an_error(write: Any) -> None:
    with pytest.raises(ConfigError, match="parallelism"):
        run("view", "--config", write("parallelism: -1\n"))


def test_check_of_good_files(write: Any) -> None:
    first, second = write("", "a.yaml"), write("parallelism: 4\n", "b.yaml")
    result = run("check", first, second)
    assert (result.exit_code, result.stdout) == (0, f"{first}: ok\n{second}: ok\n")


def test_check_tells_every_error_on_a_line_of_its_own(write: Any) -> None:
    good = write("", "good.yaml")
    bad = write("parallelism: -1\npercentageOfNodesToScore: 101\n", "bad.yaml")
    result = run("check", bad, good)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        f"{bad}: parallelism: Invalid value: -1: should be an integer value greater than zero",
        f"{bad}: percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
        f"{good}: ok",
    ]


def test_check_as_json(write: Any) -> None:
    good, bad = write("", "good.yaml"), write("parallelism: -1\n", "bad.yaml")
    result = run("check", bad, good, "-o", "json")
    assert result.exit_code == 1
    wrong = "parallelism: Invalid value: -1: should be an integer value greater than zero"
    assert json.loads(result.stdout) == [
        {"file": str(bad), "ok": False, "errors": [wrong]},
        {"file": str(good), "ok": True, "errors": []},
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("unknown: 1\n", "unknown"),
        (
            "profiles: [{plugins: {filter: {enabled: [{name: Nothing}]}}}]\n",
            'profiles[0].plugins.filter: FilterPlugin "No',
        ),
        (
            "extenders: [{urlPrefix: 'https://x', filterVerb: filter, weight: 1, tlsConfig: {caFile: /no/such}}]\n",
            "extenders: extender https://x: tlsConfig: caFile /no/such cannot be read: No such file or directory",
        ),
    ],
)
def test_check_says_where(write: Any, text: str, line: str) -> None:
    path = write(text)
    result = run("check", path)
    assert result.exit_code == 1
    assert result.stdout.startswith(f"{path}: {line}")
    assert len(result.stdout.splitlines()) == 1


def test_check_builds_the_plugins(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(args: Any, handle: Any) -> Any:
        raise ValueError("no licence")

    from dsched.plugins import registry

    monkeypatch.setattr(registry, "_IN_TREE", {**registry.intree(), "ImageLocality": broken})
    path = write("profiles: [{schedulerName: a}, {schedulerName: b}]\n")
    assert run("check", path).stdout.splitlines() == [
        f"{path}: profiles[0]: profile a: plugin ImageLocality cannot be built: no licence",
        f"{path}: profiles[1]: profile b: plugin ImageLocality cannot be built: no licence",
    ]


def test_check_of_a_file_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "gone.yaml"
    result = run("check", path)
    assert (result.exit_code, result.stdout) == (1, f"{path}: cannot be read: No such file or directory\n")


# -- the version that is emulated ----------------------------------------------------------------------------------

GATES = "TaintTolerationComparisonOperators=true"


@pytest.fixture
def nothing_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DSCHED_EMULATED_VERSION", "DSCHED_FEATURE_GATES"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("nothing_asked")
@pytest.mark.parametrize("version", list(map(str, VERSIONS)))
def test_view_is_of_the_version_that_is_named(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = config.completed(config.default(features(parse_version(version))))
    assert json.loads(run("view", "-o", "json", "--emulated-version", version).stdout) == expected
    monkeypatch.setenv("DSCHED_EMULATED_VERSION", version)
    assert json.loads(run("view", "-o", "json").stdout) == expected


@pytest.mark.usefixtures("nothing_asked")
def test_gates_may_be_repeated_or_stand_in_one_text_or_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    both = {"StorageCapacityScoring": True, "NodeDeclaredFeatures": False}
    expected = config.completed(config.default(features(parse_version("1.36"), both)))
    texts = "StorageCapacityScoring=true", "NodeDeclaredFeatures=false"
    version = ("view", "-o", "json", "--emulated-version", "1.36")
    assert json.loads(run(*version, "--feature-gates", ",".join(texts)).stdout) == expected
    assert json.loads(run(*version, *(word for text in texts for word in ("--feature-gates", text))).stdout) == expected
    monkeypatch.setenv("DSCHED_FEATURE_GATES", ",".join(texts))
    assert json.loads(run(*version).stdout) == expected
    assert expected != config.completed(config.default(features(parse_version("1.36"))))


@pytest.mark.usefixtures("nothing_asked")
def test_empty_settings_ask_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSCHED_EMULATED_VERSION", "")
    monkeypatch.setenv("DSCHED_FEATURE_GATES", "")
    assert json.loads(run("view", "-o", "json").stdout) == config.completed(config.default(DEFAULT))


@pytest.mark.usefixtures("nothing_asked")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--emulated-version", "1.33"), "--emulated-version: refused\n  '1.33': expected one of 1.34, 1.35, 1.36,"),
        (("--feature-gates", "Wings"), "--feature-gates: refused\n  missing bool value for Wings"),
        (("--feature-gates", "Wings=true"), "unrecognized feature gate: Wings"),
        (("--emulated-version", "1.34", "--feature-gates", GATES), "feature is PreAlpha at emulated version 1.34"),
    ],
)
def test_what_cannot_be_emulated_is_refused(write: Any, words: tuple[str, ...], message: str) -> None:
    for command in (("view",), ("check", write(""))):
        with pytest.raises(ConfigError) as refused:
            run(*command, *words)
        assert message in str(refused.value)


@pytest.mark.usefixtures("nothing_asked")
def test_check_is_for_the_version_that_is_named(write: Any) -> None:
    shape = "[{utilization: 0, score: 0}, {utilization: 100, score: 10}]"
    path = write(f"profiles: [{{pluginConfig: [{{name: VolumeBinding, args: {{shape: {shape}}}}}]}}]\n")
    assert run("check", path, "--emulated-version", "1.37").stdout == f"{path}: ok\n"
    older = ("check", path, "--emulated-version", "1.36")
    refused = run(*older)
    assert (refused.exit_code, "shape" in refused.stdout) == (1, True)
    assert run(*older, "--feature-gates", "StorageCapacityScoring=true").exit_code == 0
