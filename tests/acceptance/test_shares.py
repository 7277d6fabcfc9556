"""The page about queues between teams, for somebody who goes through examples/09-two-teams with it open.

With ``DSCHED_SCREENSHOTS=docs/images`` it writes the pictures of docs/ui.md.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.browser import Browser, browser, chrome
from tests.acceptance.fixtures import MakeSystem
from tests.acceptance.processes import wait_until
from tests.acceptance.served_page import Served, served
from tests.acceptance.system import System

__all__ = ["browser", "chrome"]

EXAMPLE = Path(__file__).parents[2] / "examples" / "09-two-teams"
GPU = "nvidia.com/gpu"


@pytest.fixture
def teams(make_system: MakeSystem) -> Iterator[System]:
    """The example's cluster and queues."""
    system = make_system()
    system.up("--evaluators", "1", "--binders", "1", "--config", str(EXAMPLE / "scheduler.yaml"))
    system.ask("apply", "-f", str(EXAMPLE / "cluster.yaml"))
    system.ask("apply", "-f", str(EXAMPLE / "queues.yaml"))
    yield system


def shown(page: Served, name: str) -> dict[str, object]:
    """What the page tells of a queue's GPUs."""
    queues = {each["name"]: each for each in page.get("/api/shares").json()["queues"]}
    found: dict[str, object] = queues.get(name, {}).get("resources", {}).get(GPU, {})
    return found


def test_what_is_borrowed_and_what_is_taken_back(teams: System, browser: Browser) -> None:
    with served(teams) as page:
        teams.ask("apply", "-f", str(EXAMPLE / "research.yaml"))
        teams.told("wait", "--for", "scheduled")
        browser.open(f"{page.url}/shares")
        browser.wait_for("28 used, 12 borrowed; due 28", "#shares")
        titles = "return [...document.querySelectorAll('#shares .bar title')].map((each) => each.textContent)"
        assert f"16 of 16 {GPU} guaranteed, 12 borrowed, limit 28, fair share 28" in str(browser.run(titles))
        assert shown(page, "research")["borrowed"] == 12
        browser.picture("ui-shares", 680)

        teams.ask("apply", "-f", str(EXAMPLE / "production.yaml"))
        teams.told("wait", "--for", "scheduled")
        browser.wait_for("16 used; due 16", "#shares")
        browser.wait_for("6 lately", "#shares")
        wait_until("production has what is guaranteed to it", lambda: shown(page, "production").get("used") == 16)
        assert (shown(page, "research")["used"], shown(page, "research")["borrowed"]) == (16, 0)

        teams.ask("apply", "-f", str(EXAMPLE / "research.yaml"))
        wait_until("those that had to go wait again", lambda: shown(page, "research").get("pending") == 12)
        browser.wait_for("research\t6\t6", "#shares")
        browser.link("research")
        browser.wait_for("default/research-", "#next")
        waits = {each["pod"]: each["waits_for"] for each in page.get("/api/shares/research").json()["next_pods"]}
        assert len(waits) == 6
        wait_until(
            "each pod says what it waits for",
            lambda: all(each["waits_for"] for each in page.get("/api/shares/research").json()["next_pods"]),
        )
        browser.wait_for("Insufficient nvidia.com/gpu", "#next")
        lines = "return document.querySelectorAll('#over-time .line-first').length"
        wait_until("usage is drawn", lambda: browser.run(lines))
        browser.picture("ui-share", 1250)
        history = page.get("/api/shares/research").json()["history"]
        assert max(history["used"][GPU]) == 28
        assert history["used"][GPU][-1] == 16
        assert history["reclaimed_pods"][-1] == 6
        assert browser.errors() == []
