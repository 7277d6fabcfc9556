"""Go's text/template, as far as scheduler_perf's files use it."""

from pathlib import Path

import pytest

from dsched.bench.text_template import TextTemplate

VALUES = {"Index": 7, "Count": 20, "zone": "east", "text": "12", "kind": "gpu", "list": [{"a": 1}]}


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("pod-{{ .Index }}", "pod-7"),
        ("pod-{{.Index}}-of-{{.Count}}", "pod-7-of-20"),
        ("{{ DivideInt 30000 .Count }}Mi", "1500Mi"),
        ("{{ DivideInt .Index 2 }}", "3"),
        ("{{ DivideFloat .Index 2 }}", "3.5"),
        ("8{{ Mod .Index 5 }}", "82"),
        ("{{ AddInt .Index 1 }} {{ SubtractInt .Index 8 }} {{ MultiplyInt .Index 3 }}", "8 -1 21"),
        ("{{ AddFloat 0.5 .Index }} {{ SubtractFloat 1 0.5 }} {{ MultiplyFloat 0.5 .Index }}", "7.5 0.5 3.5"),
        ('{{ "a b" }}', "a b"),
        ('x  {{- "a b" -}}  y', "xa by"),
        ("{{ .zone }}", "east"),
        ("no action", "no action"),
        ("{{ $n := or .devices 3 }}{{ $n }}", "3"),
        ("{{ $n := or .text 3 }}{{ Mod $n 5 }}", "2"),
        ("{{ (or .constraints nil) | JSON }} {{ .list | JSON }}", 'null [{"a": 1}]'),
        ("{{range (.text | Int)}}{{.}},{{end}}", "0,1,2,3,4,5,6,7,8,9,10,11,"),
        ("{{range $i := 3}}{{$i}}{{range $j := 2}}:{{$i}}{{$j}}{{end}} {{end}}", "0:00:01 1:10:11 2:20:21 "),
        ("{{range 0}}x{{else}}none{{end}}", "none"),
        ('{{if eq .kind "gpu"}}yes{{else}}no{{end}}', "yes"),
        ('{{if eq .other "gpu"}}yes{{else}}no{{end}}', "no"),
        ("{{range $i := 4}}{{if ge $i (Int 2)}}+{{else}}-{{end}}{{end}}", "--++"),
        ('{{if and .kind (not .other)}}{{ .kind }}{{end}}{{if ne .kind "x"}}!{{end}}', "gpu!"),
    ],
)
def test_actions_are_carried_out(text: str, made: str) -> None:
    assert TextTemplate(text).render(VALUES) == made


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ .Unknown }}", r"\.Unknown is not known; there are \.Index, "),
        ("{{ $unknown }}", "is not known"),
        ("{{ Sprintf .Index }}", "Sprintf is not one of AddFloat, "),
        ("{{ }}", r"an empty \{\{ \}\}"),
        ("{{ .Index .Count }}", r"\.Index is no function"),
        ("{{ .Index | }}", "something is missing"),
        ("{{ (Int 1 }}", "a bracket is not closed"),
        ("{{ JSON Int }}", "a function in the middle"),
        ("{{ if .Index }}", r"\{\{ if \}\} without \{\{ end \}\}"),
        ("{{ end }}", r"\{\{ end \}\} closes nothing"),
        ("{{ if .Index }}{{ else }}{{ else }}{{ end }}", r"without \{\{ end \}\}"),
    ],
)
def test_what_is_not_known_is_an_error(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        TextTemplate(text).render(VALUES)


def test_a_text_without_actions_is_fixed() -> None:
    assert TextTemplate("plain {text}").fixed
    assert not TextTemplate("{{ 1 }}").fixed


def test_every_template_of_upstream_is_read() -> None:
    folder = Path(__file__).parents[4] / "shared" / "scheduler_perf_v1.37"
    if not folder.is_dir():
        pytest.skip("../shared/scheduler_perf_v1.37 is not there")
    files = [path for path in folder.rglob("*.yaml") if path.parent.name == "templates"]
    assert len(files) > 50
    for path in files:
        TextTemplate(path.read_text())
