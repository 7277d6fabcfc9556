import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MAKE_VENV = ROOT / "deploy" / "make-venv"

# As pyenv's shims for versions that are not installed.
BROKEN_SHIM = "#!/bin/sh\necho 'pyenv: python3.12: command not found' >&2\nexit 127\n"
# Debian's python3 without python3-venv.
WITHOUT_VENV = '#!/bin/sh\ncase "$*" in *ensurepip*) exit 1 ;; --version) echo "Python 3.11.2" ;; esac\n'


def make_venv(folder, python, venv=".venv"):
    return subprocess.run(
        [MAKE_VENV, venv],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHON": str(python)},
        capture_output=True,
        text=True,
        check=False,
    )


def program(folder, text):
    path = folder / "python3.12"
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_an_interpreter_that_is_there_but_fails_is_passed_over(tmp_path):
    done = make_venv(tmp_path, program(tmp_path, BROKEN_SHIM))
    assert done.returncode == 1
    assert "no Python 3.11 or newer found" in done.stderr


def test_a_python_without_venv_is_reported_with_the_package_to_install(tmp_path):
    done = make_venv(tmp_path, program(tmp_path, WITHOUT_VENV))
    assert done.returncode == 1
    assert "apt install python3-venv" in done.stderr
    assert "Python 3.11.2" in done.stderr


def test_a_folder_that_is_no_environment_is_left_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("precious")
    done = make_venv(tmp_path, program(tmp_path, WITHOUT_VENV), venv="mine")
    assert done.returncode == 1
    assert "is no virtual environment" in done.stderr
    assert (tmp_path / "mine" / "file").read_text() == "precious"


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize(
    ("target", "chosen"), [("test", ["-m", "not built and not campaign"]), ("test-all", [])], ids=["test", "test-all"]
)
def test_make_runs_pytest_and_nothing_else(tmp_path: Path, target: str, chosen: list[str]):
    # An environment that make takes to be ready, so that only the recipe itself is shown.
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / ".dsched-installed").touch()
    done = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", target, f"VENV={tmp_path / 'venv'}"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shlex.split(done.stdout) == [f"{tmp_path / 'venv'}/bin/python", "-m", "pytest", "-n", "auto", *chosen]


@pytest.mark.parametrize("script", ["deploy/make-venv", ".ci/run"])
def test_scripts_can_be_executed(script):
    assert os.access(ROOT / script, os.X_OK)


def test_all_tests_are_run_by_ci():
    lines = [line.strip() for line in (ROOT / ".ci" / "run").read_text().splitlines()]
    assert any("make test-all" in line for line in lines if not line.startswith("#"))
    assert any("make --keep-going lint" in line for line in lines if not line.startswith("#"))
