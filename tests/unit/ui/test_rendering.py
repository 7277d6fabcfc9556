"""Whatever a value holds, it is text on the page."""

import re
from pathlib import Path

import pytest

import dsched.ui
from dsched.clock import ManualClock
from dsched.ui.rendering import Rendering

ROOM = Path(dsched.ui.__file__).parent
HOSTILE = '<img src=x onerror="alert(1)">\'{{ 7 * 7 }}'


def rendering() -> Rendering:
    return Rendering(ManualClock(), version="1", system_name=HOSTILE, writes=True, has_token=False, rehearsed=False)


def test_values_are_escaped():
    page = bytes(rendering().page("error.html", {"title": HOSTILE, "message": HOSTILE, "here": ""}).body).decode()
    assert "<img src=x" not in page
    assert "&lt;img src=x onerror=&#34;alert(1)&#34;&gt;&#39;{{ 7 * 7 }}" in page


def test_no_template_turns_escaping_off():
    for template in (ROOM / "templates").glob("*.html"):
        text = template.read_text()
        assert not re.search(r"\|\s*safe|autoescape|Markup", text), template
        # Quotes around every value of an attribute: escaping does not help without.
        assert not re.search(r"\s[a-z-]+=\{\{", text), template


def test_no_template_needs_what_the_policy_forbids():
    for template in (ROOM / "templates").glob("*.html"):
        text = template.read_text()
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:|https?://", text), template
        scripts = re.findall(r"<script[^>]*>[^<]*</script>", text)
        assert all(re.fullmatch(r'<script type="module" src="/static/[a-z]+\.js"></script>', each) for each in scripts)


def test_no_script_writes_markup_or_asks_elsewhere():
    for script in (ROOM / "static").glob("*.js"):
        text = script.read_text()
        assert not re.search(r"innerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", text), script
        assert [url for url in re.findall(r"https?://[^\"']+", text) if "www.w3.org" not in url] == [], script


@pytest.mark.parametrize(
    ("name", "parts"), [("NodeResourcesFit", ["Node", "Resources", "Fit"]), ("x", ["x"]), ("GPU", ["GPU"]), ("", [""])]
)
def test_long_names_may_be_broken_between_words(name, parts):
    camel = rendering()._templates.filters["camel"]
    assert camel(name) == parts
    assert "".join(camel(name)) == name
