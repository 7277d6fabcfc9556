import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "deploy" / "Dockerfile").read_text().replace("\\\n", " ")
INSTRUCTIONS = [tuple(line.split(maxsplit=1)) for line in TEXT.splitlines() if line and not line.startswith("#")]
LAST_STAGE = INSTRUCTIONS[max(number for number, (word, _) in enumerate(INSTRUCTIONS) if word == "FROM") :]


def values(word, instructions=INSTRUCTIONS):
    return [value for instruction, value in instructions if instruction == word]


def test_images_are_named_with_a_version():
    assert [value.split()[0] for value in values("FROM")] == ["${PYTHON_IMAGE}", "${PYTHON_IMAGE}"]
    (name,) = (value.removeprefix("PYTHON_IMAGE=") for value in values("ARG") if value.startswith("PYTHON_IMAGE="))
    assert re.fullmatch(r"python:3\.12-slim(@sha256:[0-9a-f]{64})?", name)


def test_it_runs_as_an_ordinary_user_with_a_fixed_number():
    assert values("USER", LAST_STAGE) == ["10001:10001"]
    (creation,) = values("RUN", LAST_STAGE)
    assert re.search(r"\buseradd( --no-log-init)? --uid 10001\b", " ".join(creation.split()))


def test_nothing_is_built_or_installed_in_the_final_image():
    assert not re.search(r"\b(pip|apt-get|gcc|make)\b", " ".join(values("RUN", LAST_STAGE)))


def test_what_is_copied_is_there_and_not_kept_out():
    kept_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        path for value in values("COPY") if not value.startswith("--from") for path in value.split()[:-1] if path != "."
    }
    assert copied == kept_in
    assert [path for path in copied if not (ROOT / path).exists()] == []
