"""docs/extenders.md: the example is a configuration, and the numbers are those of the code."""

import re
from pathlib import Path

from dsched import config
from dsched.extenders.client import OPENS_AFTER, PAUSE_S

PAGE = (Path(__file__).parents[2] / "docs" / "extenders.md").read_text()


def test_the_example_is_taken() -> None:
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (extender,) = config.load(text, "docs/extenders.md").extenders
    assert (extender.filter_verb, extender.bind_verb, extender.http_timeout_seconds) == ("filter", "bind", 2.0)


def test_the_numbers() -> None:
    assert f"After {OPENS_AFTER} calls in a row" in PAGE
    assert f"After {PAUSE_S:g} s the next request is sent on trial" in PAGE
