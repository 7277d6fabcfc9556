"""Files, folders and standard input."""

import io
import json
import sys
from pathlib import Path

import pytest

from dsched.errors import ManifestError
from dsched.manifests import documents, reader
from dsched.manifests.problems import Problems

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\n"


def origins(*paths: Path | str) -> list[tuple[str, str]]:
    """Origin and name of what is read; nothing may be wrong."""
    problems = Problems()
    found = reader.read([str(path) for path in paths], problems)
    problems.raise_any()
    return [(document.origin, document.value["metadata"]["name"]) for document in found]


def problems_of(*paths: Path | str) -> list[str]:
    problems = Problems()
    reader.read([str(path) for path in paths], problems)
    with pytest.raises(ManifestError) as error:
        problems.raise_any()
    return list(error.value.problems)


def test_a_single_document_has_no_index(tmp_path: Path):
    file = tmp_path / "web.yaml"
    file.write_text(POD % "a")
    assert origins(file) == [(f"{file}", "a")]


def test_documents_are_counted_from_zero_without_empty_ones(tmp_path: Path):
    file = tmp_path / "web.yaml"
    file.write_text("---\n" + POD % "a" + "---\n# nothing\n---\n" + POD % "b")
    assert origins(file) == [(f"{file}[0]", "a"), (f"{file}[1]", "b")]


def test_lists_are_taken_apart_and_their_items_counted(tmp_path: Path):
    file = tmp_path / "all.yaml"
    file.write_text(POD % "a" + "---\napiVersion: v1\nkind: List\nitems:\n- metadata: {name: b}\n  kind: Pod\n")
    assert origins(file) == [(f"{file}[0]", "a"), (f"{file}[1].items[0]", "b")]


def test_items_of_a_pod_list_need_not_say_their_kind(tmp_path: Path):
    file = tmp_path / "pods.json"
    file.write_text('{"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "a"}}]}')
    (document,) = reader.read([str(file)], Problems())
    assert document.value == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}


def test_folders_are_read_recursively_in_order_of_name(tmp_path: Path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c.yml").write_text(POD % "c")
    (tmp_path / "a.json").write_text('{"kind": "Pod", "metadata": {"name": "a"}}')
    (tmp_path / "notes.txt").write_text("not a manifest")
    assert [name for _, name in origins(tmp_path)] == ["a", "c"]


def test_standard_input(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((POD % "a").encode())))
    assert origins("-") == [("stdin", "a")]


def test_json_lines(tmp_path: Path):
    file = tmp_path / "pods.json"
    file.write_text('{"kind": "Pod", "metadata": {"name": "a"}}\n{"kind": "Pod", "metadata": {"name": "b"}}\n')
    assert origins(file) == [(f"{file}[0]", "a"), (f"{file}[1]", "b")]


def test_explicit_nulls_are_dropped(tmp_path: Path):
    file = tmp_path / "web.yaml"
    file.write_text(
        "kind: Pod\nmetadata: {name: a, labels: {x: }, annotations: }\nspec: {containers: [{name: m, image: ~}]}\n"
    )
    (document,) = reader.read([str(file)], Problems())
    assert document.value == {
        "kind": "Pod",
        "metadata": {"name": "a", "labels": {"x": ""}},
        "spec": {"containers": [{"name": "m"}]},
    }


def test_nulls_of_one_object_are_dropped_beside_objects_without(tmp_path: Path):
    file = tmp_path / "pods.json"
    items = [{"kind": "Pod", "metadata": {"name": "a"}}, {"kind": "Pod", "metadata": {"name": "b", "uid": None}}]
    file.write_text(json.dumps({"kind": "List", "items": items}))
    assert [document.value["metadata"] for document in reader.read([str(file)], Problems())] == [
        {"name": "a"},
        {"name": "b"},
    ]


def test_what_an_alias_repeats_is_not_the_same_object(tmp_path: Path):
    file = tmp_path / "web.yaml"
    file.write_text("kind: Pod\nmetadata: {name: a}\nspec: {containers: [&c {name: m, ports: []}, *c]}\n")
    (document,) = reader.read([str(file)], Problems())
    first, second = document.value["spec"]["containers"]
    assert first == second
    assert first is not second
    assert first["ports"] is not second["ports"]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.yaml", "a: b: c", "a.yaml:1:5: is not YAML: mapping values are not allowed in this context"),
        ("a.yaml", "a: 1\nb:\n  c: 1\n  c: 2", 'a.yaml:4:3: is not YAML: the key "c" is given twice'),
        ("a.json", '{"a"', "a.json: is not JSON: Input data was truncated"),
        ("a.yaml", "# nothing", "a.yaml: holds no object"),
        ("a.yaml", "- 1", "a.yaml: expected an object with kind and metadata, found a list"),
        ("a.yaml", "kind: List\nitems: 3", "a.yaml: items: expected a list, found a number"),
        (
            "a.json",
            '{"kind": "List", "items": [null]}',
            "a.json.items[0]: expected an object with kind and metadata, found nothing",
        ),
        ("a.yaml", "kind: Pod\nspec: &a\n  x: *a", "a.yaml: is nested too deeply or refers to itself"),
    ],
)
def test_what_cannot_be_read_is_told_by_file_and_place(tmp_path: Path, name: str, content: str, expected: str):
    (tmp_path / name).write_text(content)
    (problem,) = problems_of(tmp_path / name)
    assert problem.startswith(f"{tmp_path}/")
    assert problem.removeprefix(f"{tmp_path}/") == expected


def test_missing_files_and_empty_folders_are_all_told(tmp_path: Path):
    (tmp_path / "empty").mkdir()
    missing, empty = problems_of(tmp_path / "none.yaml", tmp_path / "empty")
    assert missing == f"{tmp_path}/none.yaml: cannot be read: No such file or directory"
    assert empty.startswith(f"{tmp_path}/empty: holds no manifests")


def test_scalars_are_read_as_kubernetes_reads_them():
    text = b"time: 2024-01-01T00:00:00Z\nsixty: 1:30\nis: =\nyes: on\n2: two\n0.5: half\n"
    assert documents.parse(text, "a.yaml") == [
        {"time": "2024-01-01T00:00:00Z", "sixty": "1:30", "is": "=", "true": True, "2": "two", "0.5": "half"}
    ]


def test_merged_keys_may_be_overridden():
    text = b"base: &base {a: 1, b: 2}\nmore:\n  <<: *base\n  b: 3\n"
    assert documents.parse(text, "a.yaml")[0]["more"] == {"a": 1, "b": 3}
