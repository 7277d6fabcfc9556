"""The workflows, the hooks and what makes a version name only what is there, and do what the Makefile does."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text()
ON_RUNNERS = {"docker", "gh", "helm", "make", "python", "echo"}
"""Programs that GitHub's machines have, or an action has installed."""
MADE = {"installed/bin/pip", "installed/bin/dsched"}
"""By an earlier line of the same step."""

Json = dict[str, Any]


def steps() -> Iterator[tuple[str, Json]]:
    """Workflow and job with each step."""
    for path in WORKFLOWS:
        for name, job in yaml.safe_load(path.read_text())["jobs"].items():
            yield from ((f"{path.stem}/{name}", step) for step in job["steps"])


def lines() -> Iterator[Any]:
    for job, step in steps():
        for line in step.get("run", "").splitlines():
            yield pytest.param(line, id=f"{job}: {line}")


def commands(line: str) -> Iterator[list[str]]:
    """The commands of a line of shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";|&<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if word in {";", "|", "&&", "||"}:
            if words:
                yield words
            words = []
        else:
            words.append(word)


def test_there_are_workflows():
    assert [path.stem for path in WORKFLOWS] == ["ci", "release"]
    jobs = {job.partition("/")[2] for job, _ in steps()}
    assert {"lint", "tests", "image", "chart", "docs", "wheel"} <= jobs


@pytest.mark.parametrize("line", list(lines()))
def test_every_line_runs_what_is_there(line: str):
    for program, *words in commands(line):
        if program not in ON_RUNNERS | MADE:
            assert os.access(ROOT / program, os.X_OK), f"{program} is no program of the checkout"
        if program == "make":
            assert re.search(rf"^{words[0]}:", MAKEFILE, re.MULTILINE), f"there is no target {words[0]}"
        named = [word for word in words if word.startswith(("deploy/", "docs/", "tests/", "examples/"))]
        if any(word.startswith("deploy/helm") for word in named) and not (ROOT / "deploy" / "helm").exists():
            pytest.skip("this checkout has no chart")
        assert [word for word in named if not (ROOT / word).exists()] == []


def test_actions_are_pinned_to_a_version():
    used = [(job, step["uses"]) for job, step in steps() if "uses" in step]
    assert used
    assert [each for each in used if not re.fullmatch(r"[\w-]+/[\w./-]+@v\d+\.\d+\.\d+", each[1])] == []
    versions: dict[str, set[str]] = {}
    for _, action in used:
        name, _, version = action.partition("@")
        versions.setdefault(name, set()).add(version)
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


def test_files_that_steps_name_are_there():
    for job, step in steps():
        settings = step.get("with", {})
        if "file" in settings:
            assert (ROOT / settings["file"]).exists(), job
        for file in re.findall(r"hashFiles\(([^)]*)\)", str(settings)):
            assert all((ROOT / name.strip(" '")).exists() for name in file.split(",")), job


def test_no_job_may_more_than_it_needs():
    for path in WORKFLOWS:
        workflow = yaml.safe_load(path.read_text())
        assert workflow["permissions"] == {"contents": "read"}, path.name
        for name, job in workflow["jobs"].items():
            assert job["timeout-minutes"] <= 90, name
            if path.stem == "ci":
                assert "permissions" not in job, "what others propose runs there"


def test_actionlint_has_nothing_to_say():
    program = shutil.which("actionlint")
    if program is None:
        pytest.skip("actionlint is not on PATH: go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.7")
    done = subprocess.run([program, *map(str, WORKFLOWS)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


# -- before a commit ---------------------------------------------------------------------------------------------------

HOOKS = {
    hook["id"]: hook
    for repository in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    for hook in repository["hooks"]
}


def test_the_hooks_are_what_make_lint_does():
    wanted = re.search(r"^lint: (.*?) ##", MAKEFILE, re.MULTILINE)
    assert wanted is not None
    recipes = {
        target: recipe.replace("$(BIN)", ".venv/bin")
        for target, recipe in re.findall(r"^([\w-]+):.*\n\t(.*)$", MAKEFILE, re.MULTILINE)
    }
    done = {recipes[target].removesuffix(" .") for target in wanted[1].split()}
    assert {hook["entry"].replace(" --force-exclude", "") for hook in HOOKS.values()} == done


@pytest.mark.parametrize("name", HOOKS)
def test_a_hooks_command_runs(name: str, tmp_path: Path):
    """From the environment of the checkout, on one file; mypy on an empty one: its own run takes half a minute."""
    program, *options = shlex.split(HOOKS[name]["entry"])
    assert HOOKS[name]["language"] == "system"
    given = [str(Path(__file__))] if HOOKS[name].get("pass_filenames", True) else []
    if name == "mypy":
        (tmp_path / "empty.py").touch()
        given = ["--config-file=", str(tmp_path / "empty.py")]
    command = [str(Path(sys.prefix) / program.removeprefix(".venv/")), *options, *given]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# -- a version ---------------------------------------------------------------------------------------------------------

VERSIONED = (
    "pyproject.toml",
    "CHANGELOG.md",
    "docker-compose.yml",
    "deploy/Dockerfile",
    "deploy/kubernetes/base/kustomization.yaml",
    "docs/kubernetes.md",
    "deploy/helm/dsched/Chart.yaml",
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what a version changes."""
    for name in ("deploy/set-version", "deploy/check-tag", *VERSIONED):
        if (ROOT / name).exists():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def call(folder: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_version_is_changed_everywhere(checkout: Path):
    before = {name: (checkout / name).read_text() for name in VERSIONED if (checkout / name).exists()}
    (old,) = re.findall(r'^version = "(.*)"$', before["pyproject.toml"], re.MULTILINE)
    told = call(checkout, "deploy/set-version", "12.3.4rc1", "2027-01-31")
    assert told.returncode == 0, told.stderr
    for name, text in before.items():
        now = (checkout / name).read_text()
        if name == "CHANGELOG.md":
            assert now == text.replace("## Unreleased\n", "## Unreleased\n\n## 12.3.4rc1 - 2027-01-31\n", 1)
        elif name == "pyproject.toml":
            assert now == text.replace(f'version = "{old}"', 'version = "12.3.4rc1"', 1)
        else:
            assert now == text.replace(old, "12.3.4rc1"), name
            assert name == "deploy/Dockerfile" or "12.3.4rc1" in now, name


@pytest.mark.parametrize("version", ["1.2", "v1.2.3", "1.2.3-beta", ""])
def test_what_is_no_version_changes_nothing(checkout: Path, version: str):
    assert call(checkout, "deploy/set-version", version).returncode != 0
    assert (checkout / "pyproject.toml").read_text() == (ROOT / "pyproject.toml").read_text()


def test_a_tag_is_checked_against_version_and_changelog(checkout: Path):
    assert "deploy/set-version 12.3.4" in call(checkout, "deploy/check-tag", "v12.3.4").stderr
    (checkout / "CHANGELOG.md").write_text(
        "# Changelog\n\n## Unreleased\n\n### Added\n\n- A thing.\n\n## 0.0.9 - 2026-01-01\n\n- Old.\n"
    )
    call(checkout, "deploy/set-version", "12.3.4")
    assert call(checkout, "deploy/check-tag", "v12.3.4").returncode == 0
    notes = call(checkout, "deploy/check-tag", "--notes", "v12.3.4")
    assert notes.stdout.strip() == "### Added\n\n- A thing."
    (checkout / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n## 12.3.4 - 2027-01-01\n\n")
    assert "has nothing under" in call(checkout, "deploy/check-tag", "v12.3.4").stderr
