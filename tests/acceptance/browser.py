"""A real browser without a window: Debian's chromium, driven by its chromedriver."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from tests.acceptance.processes import wait_until

SCREENSHOTS = "DSCHED_SCREENSHOTS"
"""Environment variable: a folder to which the tests write the pictures for the docs."""
WIDTH, HEIGHT = 1200, 760
COLOURS = 64
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class Browser:
    """One browser, its errors, and what a person does with it."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, url: str) -> None:
        """Go to a page."""
        self.driver.get(url)

    def find(self, css: str) -> WebElement:
        """An element, when it is there."""
        found = wait_until(f"{css} is there", lambda: self.driver.find_elements(By.CSS_SELECTOR, css))
        return found[0]

    def click(self, css: str) -> None:
        """Click on an element."""
        self._do(f"click on {css}", lambda: self.find(css).click())

    def link(self, text: str) -> None:
        """Follow a link by its text."""
        self._do(f"link {text}", lambda: self.driver.find_element(By.LINK_TEXT, text).click())

    def write(self, css: str, text: str) -> None:
        """Write into a field, in place of what is there."""

        def write() -> None:
            field = self.find(css)
            field.clear()
            field.send_keys(text)

        self._do(f"write into {css}", write)

    def _do(self, what: str, action: Callable[[], None]) -> None:
        """Do something; again when the page replaces the element meanwhile, as it does with every news."""

        def done() -> bool:
            try:
                action()
            except (NoSuchElementException, StaleElementReferenceException):
                return False
            return True

        wait_until(what, done)

    def text(self, css: str = "main") -> str:
        """What a person reads there now; empty while a part is being replaced."""
        found = self.driver.execute_script("return document.querySelector(arguments[0])?.innerText ?? ''", css)
        return str(found)

    def wait_for(self, text: str, css: str = "main") -> None:
        """Until a text is to be read somewhere."""
        wait_until(f"{text!r} in {css} of {self.driver.current_url}", lambda: text in self.text(css))

    def run(self, script: str) -> object:
        """What a script on the page returns."""
        answer: object = self.driver.execute_script(script)
        return answer

    def errors(self) -> list[str]:
        """What the console was told since the last call: script errors, breaches of the policy, failed requests."""
        return [str(each["message"]) for each in self.driver.get_log("browser") if each["level"] == "SEVERE"]  # type: ignore[no-untyped-call]

    def picture(self, name: str, height: int = HEIGHT) -> None:
        """Write the page as a picture of few colours, where the environment names a folder."""
        folder = os.environ.get(SCREENSHOTS)
        if not folder:
            return
        from PIL import Image

        path = Path(folder) / f"{name}.png"
        self.driver.set_window_size(WIDTH, height)
        self.driver.save_screenshot(str(path))
        self.driver.set_window_size(WIDTH, HEIGHT)
        with Image.open(path) as picture:
            picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


@pytest.fixture
def browser(chrome: webdriver.Chrome) -> Iterator[Browser]:
    """The module's browser, which shows nothing and has said nothing yet."""
    yield Browser(chrome)
    chrome.get("about:blank")
    Browser(chrome).errors()


@pytest.fixture(scope="module")
def chrome() -> Iterator[webdriver.Chrome]:
    """Skipped without chromium and chromedriver: Selenium would download them."""
    program = next((found for each in _BROWSERS if (found := shutil.which(each))), None)
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("no chromium or no chromedriver on PATH (Debian: apt install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    # No sandbox: containers and root have none. No /dev/shm: containers have a small one.
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    options.add_argument(f"--window-size={WIDTH},{HEIGHT}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(driver))
    try:
        started.set_page_load_timeout(120)
        yield started
    finally:
        started.quit()
