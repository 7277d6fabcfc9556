"""Which form of a z-page a header asks for. The cases of k8s.io/apiserver's statusz_test.go are among them."""

import pytest

from dsched.observe.negotiation import JSON, TEXT, YAML, Form, negotiate

WANTED = "v=v1beta1;g=config.k8s.io;as=Statusz"


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", Form(TEXT)),
        ("  ", Form(TEXT)),
        ("text/plain", Form(TEXT)),
        ("text/*", Form(TEXT)),
        ("*/*", Form(TEXT)),
        ("*", Form(TEXT)),
        (f"application/json;{WANTED}", Form(JSON, "v1beta1")),
        (f"application/json; {WANTED.replace(';', ' ; ')}", Form(JSON, "v1beta1")),
        (f"application/yaml;{WANTED}", Form(YAML, "v1beta1")),
        (f"application/*;{WANTED}", Form(JSON, "v1beta1")),
        (f"*/*;{WANTED}", Form(JSON, "v1beta1")),
        ("application/json;v=v1alpha1;g=config.k8s.io;as=Statusz", Form(JSON, "v1alpha1")),
        ("application/json;v=foo;g=config.k8s.io;as=Statusz,*/*", Form(TEXT)),
        ("text/html,application/xhtml+xml,*/*;q=0.8", Form(TEXT)),
        (f"application/json;{WANTED},application/yaml;{WANTED}", Form(JSON, "v1beta1")),
        (f"application/json;q=0.5;{WANTED},application/yaml;{WANTED}", Form(YAML, "v1beta1")),
        (f"text/*;q=1,application/json;{WANTED}", Form(JSON, "v1beta1")),
        (f"application/json;q=much;{WANTED},text/plain;q=0.1", Form(TEXT)),
    ],
)
def test_what_is_wanted_most_is_served(accept: str, form: Form) -> None:
    assert negotiate(accept, "Statusz") == form


@pytest.mark.parametrize(
    "accept",
    [
        "application/xml",
        "application/json",
        "application/yaml",
        "application/json;v=v1beta1;g=config.k8s.io",
        "application/json;v=v1;g=config.k8s.io;as=Statusz",
        "application/json;v=v1beta1;g=apps;as=Statusz",
        "application/json;v=v1beta1;g=config.k8s.io;as=Flagz",
        f"application/json;stream=watch;{WANTED}",
        f"application/json;sv=v1;{WANTED}",
        f"application/cbor;{WANTED}",
        f"text/plain;{WANTED}",
        "json",
        ",",
    ],
)
def test_nothing_is_served_to_who_wants_something_else(accept: str) -> None:
    assert negotiate(accept, "Statusz") is None
