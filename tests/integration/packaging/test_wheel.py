"""What is released: it builds, has everything and nothing else, and works outside of a checkout."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

import dsched

ROOT = Path(__file__).parents[3]
PACKAGES = ("dsched", "workers")
EXTRAS = ("kubernetes", "starlette", "uvicorn", "jinja2", "matplotlib")
"""What only extras install: commands that do not need it must not load it."""
OFFLINE = ("dns error", "failed to fetch", "connection refused", "name resolution", "network is unreachable")


def run(command: Sequence[str | Path], cwd: Path) -> str:
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(target: str, source: Path, folder: Path) -> Path:
    pytest.importorskip("hatchling", reason="hatchling is not installed: pip install -e '.[dev]'")
    run([sys.executable, "-m", "hatchling", "build", "-t", target, "-d", folder], source)
    (built,) = folder.iterdir()
    return built


def content(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an environment with the wheel in it; its dependencies are those that run this test, so nothing is fetched."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps", wheel]
    run(install, folder)
    # Behind the wheel; files named *.pth in there, such as that of an editable install, are not followed.
    site = run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], folder).strip()
    ours = dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))
    (Path(site) / "dependencies.pth").write_text("".join(f"{path}\n" for path in ours))
    return python


def test_the_wheel_has_all_of_the_packages_and_nothing_else(wheel: Path) -> None:
    there = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert content(wheel) == there
    assert "dsched/py.typed" in there
    assert {Path(name).suffix for name in there} >= {".lua", ".html", ".css", ".js", ".svg"}


def test_the_source_distribution_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    source = build("sdist", ROOT, tmp_path / "sdist")
    (unpacked := tmp_path / "source").mkdir()
    run(["tar", "--extract", "--file", source, "--directory", unpacked], tmp_path)
    (folder,) = unpacked.iterdir()
    assert not {"tests", "benchmarks", "deploy"} & {path.name for path in folder.iterdir()}
    assert content(build("wheel", folder, tmp_path / "again")) == content(wheel)


def test_it_works_outside_of_a_checkout(python: Path, tmp_path: Path) -> None:
    command = python.parent / "dsched"
    where = run([python, "-c", "import dsched, workers; print(dsched.__file__, workers.__file__)"], tmp_path)
    assert all(Path(path).is_relative_to(python.parents[1]) for path in where.split())
    assert run([command, "--version"], tmp_path).strip() == f"dsched {dsched.__version__}"
    assert "vectors" in run([command, "conformance", "--help"], tmp_path)
    placed = run([command, "simulate", "-f", ROOT / "examples" / "01-first-cluster", "-o", "json"], tmp_path)
    assert json.loads(placed)


@pytest.mark.parametrize("runner", ["uvx", "pipx"])
def test_it_runs_without_being_installed(wheel: Path, tmp_path: Path, runner: str) -> None:
    """With its dependencies as the index has them today: the only test that fetches any."""
    pytest.importorskip(
        "uv" if runner == "uvx" else "pipx", reason=f"{runner} is not installed: pip install -e '.[dev]'"
    )
    words = ["uv", "tool", "run", "--from"] if runner == "uvx" else ["pipx", "run", "--spec"]
    command = [sys.executable, "-m", *words, wheel, "dsched", "simulate", "-o", "json"]
    variables = {"UV_CACHE_DIR": str(tmp_path / "cache"), "PIPX_HOME": str(tmp_path / "pipx")}
    done = subprocess.run(
        [*map(str, command), "-f", str(ROOT / "examples" / "01-first-cluster")],
        cwd=tmp_path,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    if done.returncode != 0 and any(word in done.stderr.lower() for word in OFFLINE):
        pytest.skip(f"no package index is reached: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)


def test_every_script_and_page_is_found_there(python: Path, tmp_path: Path) -> None:
    """By what the processes read at their start: the Lua scripts; by the web page: its files."""
    program = """
from importlib import resources
for folder, suffix in ("state/scripts", ".lua"), ("cluster/standalone/scripts", ".lua"), ("ui/templates", ".html"):
    files = [each for each in resources.files("dsched").joinpath(folder).iterdir() if each.name.endswith(suffix)]
    assert files and all(each.read_text() for each in files), folder
"""
    run([python, "-c", program], tmp_path)


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["simulate", "-f", str(ROOT / "examples" / "01-first-cluster")]],
    ids=lambda arguments: arguments[0].lstrip("-"),
)
def test_extras_are_not_loaded_by_what_does_not_need_them(
    python: Path, tmp_path: Path, arguments: Sequence[str]
) -> None:
    # redis-py loads OpenTelemetry wherever it finds it, so it is hidden: that these commands work is the proof.
    program = f"""
import sys
sys.modules["opentelemetry"] = None
sys.argv = ["dsched", *{list(arguments)!r}]
from dsched.cli.main import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("loaded:", *sorted({{name.partition(".")[0] for name in sys.modules}} & set({EXTRAS!r})))
"""
    assert run([python, "-c", program], tmp_path).splitlines()[-1] == "loaded:"
