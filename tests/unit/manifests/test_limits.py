"""Manifests that are too large, too deep or that multiply are refused, with the place and the limit."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from dsched.errors import ManifestError
from dsched.manifests import limits, load


def refusal(folder: Path, content: str, name: str = "x.yaml") -> str:
    path = folder / name
    path.write_text(content)
    with pytest.raises(ManifestError) as found:
        load.load([str(path)])
    return str(found.value).removeprefix(f"{folder}/")


def pod(**fields: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "image": "nginx"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", **fields}, "spec": spec}


@pytest.mark.parametrize("unit", ["[", "- ", "? ", "{a: ", "- - ", "[{a: "])
def test_yaml_that_would_exhaust_the_parsers_stack_is_refused(tmp_path: Path, unit: str) -> None:
    assert "nested" in refusal(tmp_path, unit * 100_000)


def test_deep_indentation_is_refused_where_it_is_too_deep(tmp_path: Path) -> None:
    text = "\n".join(" " * depth + "a:" for depth in range(limits.DEEPEST + 5))
    assert (
        refusal(tmp_path, text)
        == f"x.yaml:{limits.DEEPEST + 1}:{limits.DEEPEST + 1}: is nested more than 100 levels deep"
    )


def test_deep_json_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, '{"a":' * 100_000, "x.json") == "x.json: is nested too deeply"


@pytest.mark.parametrize("levels", [limits.DEEPEST, 800])
def test_json_is_refused_where_yaml_is(tmp_path: Path, levels: int) -> None:
    deep = '{"a":' * levels + "1" + "}" * levels
    told = refusal(tmp_path, f'{{"kind": "Pod", "metadata": {{"name": "web"}}, "spec": {deep}}}', "x.json")
    assert told == "x.json: is nested more than 100 levels deep"


def test_brackets_in_texts_and_side_by_side_are_not_depth(tmp_path: Path) -> None:
    annotations = {"text": "[{" * limits.DEEPEST} | {f"number-{number}": "[" for number in range(limits.DEEPEST)}
    tolerations = [{"key": f"key-{number}", "operator": "Exists"} for number in range(limits.DEEPEST)]
    found = pod(annotations=annotations)
    found["spec"]["tolerations"] = tolerations
    path = tmp_path / "x.json"
    path.write_bytes(msgspec.json.encode(found))
    assert load.load([str(path)])[0].value["metadata"]["annotations"] == annotations


def test_aliases_that_multiply_are_refused_before_they_do(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{number + 1}: &a{number + 1} [{', '.join([f'*a{number}'] * 10)}]" for number in range(9)]
    assert "aliases repeat more than 100000 values" in refusal(tmp_path, "\n".join(lines))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_aliases_that_multiply_are_seen_without_blanks_and_in_any_encoding(tmp_path: Path, encoding: str) -> None:
    levels = ['"a0":&a0 ["x","x","x","x","x","x","x","x","x","x"]']
    levels += [
        f'"a{level}":&a{level} {{{",".join(f"{key!r}:*a{level - 1} " for key in "0123456789")}}}'
        for level in range(1, 6)
    ]
    path = tmp_path / "x.yaml"
    path.write_bytes(f"\ufeff{{{','.join(levels)}}}".encode(encoding))
    with pytest.raises(ManifestError, match="aliases repeat more than 100000 values"):
        load.load([str(path)])


def test_texts_that_look_like_aliases_are_fine(tmp_path: Path) -> None:
    made = pod(annotations={"url": "http://x/?a=b&c=d", "cron": "*/5 * *x", "glob": "*.log&"})
    path = tmp_path / "x.yaml"
    path.write_bytes(msgspec.yaml.encode(made))
    (found,) = load.load([str(path)])
    assert found.value["metadata"]["annotations"] == made["metadata"]["annotations"]


def test_an_anchor_that_contains_itself_is_refused(tmp_path: Path) -> None:
    assert "refers to itself" in refusal(tmp_path, "kind: Pod\nmetadata: &a\n  name: *a\n  labels: [*a]\n")


def test_a_few_aliases_are_fine(tmp_path: Path) -> None:
    text = msgspec.yaml.encode(pod()).decode().replace("name: web", "name: &n web\n  labels: {app: *n}")
    path = tmp_path / "x.yaml"
    path.write_text(text)
    (found,) = load.load([str(path)])
    assert found.value["metadata"]["labels"] == {"app": "web"}


def test_an_object_larger_than_an_api_server_takes_is_refused(tmp_path: Path) -> None:
    small, large = pod(annotations={"a": "x" * (1 << 20)}), pod(annotations={"a": "x" * (4 << 20)})
    path = tmp_path / "small.json"
    path.write_bytes(msgspec.json.encode(small))
    assert len(load.load([str(path)])) == 1
    text = msgspec.json.encode({"kind": "List", "apiVersion": "v1", "items": [small, large]}).decode()
    assert refusal(tmp_path, text, "x.json") == (
        "x.json.items[1]: is 4.0 MiB as JSON; no object may be larger than 3 MiB"
    )


def test_a_file_may_hold_many_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LARGEST_FILE", 1 << 20)
    assert "is larger than 1 MiB; split it" in refusal(tmp_path, "a" * (1 << 20) + "a")
