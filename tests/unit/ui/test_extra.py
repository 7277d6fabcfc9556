"""The web framework is imported by ``dsched ui`` alone, and asked for where it is missing."""

import json
import subprocess
import sys

import pytest

LIBRARIES = ("starlette", "uvicorn", "jinja2")
RUN = "from dsched.cli.main import main\n"


def run(script: str, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", [["--help"], ["ui", "--help"], ["explain", "pod", "--help"]], ids=" ".join)
def test_nothing_else_imports_it(words: list[str]) -> None:
    told = f"print(json.dumps([each for each in {LIBRARIES!r} if each in sys.modules]))"
    done = run(f"import json, sys\n{RUN}try:\n    main()\nexcept SystemExit:\n    {told}", *words)
    assert json.loads(done.stdout.splitlines()[-1]) == [], done.stderr


@pytest.mark.parametrize("missing", LIBRARIES)
def test_without_the_extra_the_command_says_what_to_install(missing: str) -> None:
    done = run(f"import sys\nsys.modules[{missing!r}] = None\n{RUN}main()", "ui")
    assert done.returncode == 1
    assert f"the web page needs {missing}; install it with: pip install 'dsched[ui]'" in done.stderr
    assert "Traceback" not in done.stderr
