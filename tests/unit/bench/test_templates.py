"""Templates: what Go's text/template would make of them."""

from pathlib import Path

import pytest

from dsched.bench.templates import Template
from dsched.errors import ConfigError


@pytest.mark.parametrize(
    "text", ["{{ .Unknown }}", "{{ Sprintf .Index }}", "{{ }}", "{{ Mod .Index }}", "{{ if .Index }}"]
)
def test_what_is_not_known_is_an_error_that_names_the_file(text: str, tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(f"name: a{text}")

    with pytest.raises(ConfigError, match=r"pod\.yaml: "):
        Template(path).object(1, 2)


def test_division_by_zero_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text("name: a{{ DivideInt 1 .Index }}")

    with pytest.raises(ConfigError, match=r"pod\.yaml.*division"):
        Template(path).object(0, 1)


def test_a_template_without_actions_says_the_same_for_every_index(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text("kind: Pod\nmetadata: {labels: {NodeName: x}}")

    assert Template(path).fixed
    assert Template(path).object(0, 9) == Template(path).object(8, 9)


def test_field_names_are_taken_in_any_case_and_names_of_labels_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(
        """
kind: Pod
metadata: {labels: {NODENAME: x}}
spec:
  topologySpreadConstraints:
  - {MaxSkew: 1, NodeTaintsPolicy: Honor, labelSelector: {matchLabels: {TopologyKey: y}}}
"""
    )

    value = Template(path).object()

    assert value["metadata"]["labels"] == {"NODENAME": "x"}
    (constraint,) = value["spec"]["topologySpreadConstraints"]
    assert constraint == {
        "maxSkew": 1,
        "nodeTaintsPolicy": "Honor",
        "labelSelector": {"matchLabels": {"TopologyKey": "y"}},
    }


@pytest.mark.parametrize("content", ["[1, 2]", "a: [", "", "a: 1\n---\nb: 2"])
def test_a_file_that_holds_no_object_is_an_error_that_names_it(content: str, tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(content)

    with pytest.raises(ConfigError, match=r"pod\.yaml"):
        Template(path).object()


def test_a_file_that_is_not_there_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.yaml cannot be read"):
        Template(tmp_path / "missing.yaml")
