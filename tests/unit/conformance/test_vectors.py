"""Files of vectors."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from dsched.config.feature_gates import Version
from dsched.conformance import vectors
from dsched.errors import ManifestError


def line(name: str) -> str:
    return json.dumps({"case": {"name": name, "pod": {}}, "expect": {"name": name}})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ports.jsonl").write_text(f"{line('ports-1')}\n\n{line('ports-2')}\n")
    (tmp_path / "affinity.jsonl.gz").write_bytes(gzip.compress(line("affinity-1").encode()))
    (tmp_path / "README.md").write_text("not a vector")
    return tmp_path


def names(*args: Any) -> list[str]:
    return [vector.name for vector in vectors.select(*args)]


def test_a_folder_is_read_by_name_and_a_file_as_it_is(folder: Path) -> None:
    assert names([folder]) == ["affinity-1", "ports-1", "ports-2"]
    assert names([folder / "ports.jsonl"]) == ["ports-1", "ports-2"]
    first = vectors.select([folder])[0]
    assert (first.family, first.case["pod"], first.expect) == ("affinity", {}, {"name": "affinity-1"})


def test_families_and_names_narrow_the_selection(folder: Path) -> None:
    assert names([folder], ["ports"]) == ["ports-1", "ports-2"]
    assert names([folder], ["ports", "affinity"], ["ports-2", "affinity-1"]) == ["affinity-1", "ports-2"]


def test_nothing_left_is_an_error(folder: Path) -> None:
    with pytest.raises(ManifestError, match="no vector has the family and the name"):
        vectors.select([folder], ["ports"], ["affinity-1"])


def test_paths_that_hold_no_vectors(folder: Path) -> None:
    empty = folder / "empty"
    empty.mkdir()
    for path in (empty, folder / "gone.jsonl"):
        with pytest.raises(ManifestError, match=f"{path.name}: expected a file of vectors"):
            vectors.files([path])


@pytest.mark.parametrize("text", ["{", "[]", '{"case": {}, "expect": {}}', '{"case": {"name": "a"}}'])
def test_lines_that_are_no_vectors_are_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(f"{line('good')}\n\n{text}\n")
    with pytest.raises(ManifestError, match=r"bad\.jsonl:3: not a vector"):
        list(vectors.read(path))


def test_a_file_that_is_not_compressed(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl.gz"
    path.write_text(line("good"))
    with pytest.raises(ManifestError, match="cannot be read"):
        list(vectors.read(path))


def test_folders_in_folders_are_read_each_with_its_version(folder: Path) -> None:
    for name in ("v1.37", "v1.35-more", "plain"):
        (folder / name).mkdir()
        (folder / name / "x.jsonl").write_text(line(f"in-{name}"))
    found = {vector.name: str(vector.version) for vector in vectors.select([folder], ["x"])}
    assert found == {"in-v1.37": "1.37", "in-v1.35-more": "1.35", "in-plain": "1.34"}
    told = vectors.select([folder], ["x"], emulated=Version(1, 36))
    assert {str(vector.version) for vector in told} == {"1.36"}
