"""The image installs what was pinned, and what was pinned is what the project asks for."""

import re
import tomllib
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text().replace("\\\n", " ")
EXTRAS = ("kubernetes", "otel", "ui")
"""What the image has besides: `dsched leader --cluster kubernetes`, `--otlp` and `dsched ui` work in it."""
IMAGE = {**default_environment(), "sys_platform": "linux", "platform_system": "Linux", "python_version": "3.12"}


def pinned(name):
    """Package to the requirement with ``==``; hashes of its files are checked to be there."""
    found = {}
    for entry in re.split(r"\n(?=\S)", (ROOT / "deploy" / name).read_text().strip()):
        if entry.startswith("#"):
            continue
        requirement = Requirement(entry.partition("\\\n")[0].strip().removesuffix("\\").strip())
        assert re.fullmatch(r"(\s*--hash=sha256:[0-9a-f]{64}\s*\\?)+", entry.partition("\\\n")[2]), requirement.name
        if requirement.marker is None or requirement.marker.evaluate(IMAGE):
            found[canonicalize_name(requirement.name)] = requirement
    return found


def unmet(wanted, pins):
    """What of the wanted requirements has no pin, or one that does not satisfy it."""

    def met(requirement):
        pin = pins.get(canonicalize_name(requirement.name))
        return pin is not None and all(requirement.specifier.contains(each.version) for each in pin.specifier)

    return [str(each) for each in map(Requirement, wanted) if not met(each)]


def test_what_the_project_asks_for_is_pinned():
    project = PROJECT["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(each for extra in EXTRAS for each in extras[extra])]
    assert unmet(wanted, pinned("requirements.txt")) == [], "run: make pins"
    assert unmet(PROJECT["build-system"]["requires"], pinned("requirements-build.txt")) == [], "run: make pins"


def test_a_pin_that_is_too_old_or_missing_is_noticed():
    pins = pinned("requirements.txt")
    assert unmet(["kubernetes>=9999"], pins) == ["kubernetes>=9999"]
    assert unmet(["pytest"], pins) == ["pytest"]


def test_the_image_installs_nothing_without_a_hash():
    installs = re.findall(r"\bpip (?:--python \S+ )?(?:install|wheel)\b[^&\n]*", DOCKERFILE)
    assert installs
    assert [each for each in installs if "--require-hashes" not in each and "--no-deps" not in each] == []


def test_what_builds_the_wheel_is_the_same_in_both_places():
    lines = (ROOT / "deploy" / "requirements-build.in").read_text().splitlines()
    listed = [line for line in lines if not line.startswith("#")]
    assert set(PROJECT["build-system"]["requires"]) <= set(listed)
    assert unmet(listed, pinned("requirements-build.txt")) == [], "run: make pins"
