"""The pages make a site: every page is in its navigation, every link leads somewhere."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "mkdocs.yml"


def leaves(nav: Any) -> Iterator[str]:
    """The pages that a navigation names."""
    if isinstance(nav, str):
        yield nav
    for part in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
        yield from leaves(part)


def build(config: Path, site: Path) -> subprocess.CompletedProcess[str]:
    if importlib.util.find_spec("material") is None:
        pytest.skip("mkdocs-material is not installed: pip install -e '.[docs]'")
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config), "--site-dir", str(site)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_every_page_is_in_the_navigation_once() -> None:
    named = list(leaves(yaml.safe_load(CONFIG.read_text())["nav"]))
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")]
    assert sorted(named) == sorted(pages)


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    done = build(CONFIG, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index"}
    assert {folder.name for folder in tmp_path.iterdir() if (folder / "index.html").exists()} >= pages
    assert not list(tmp_path.rglob("*.py"))
    plugins = (tmp_path / "plugins" / "index.html").read_text()
    assert "https://github.com/dsched/dsched/blob/main/examples/02-gang-plugin" in plugins
    assert 'href="../../scaling/#the-constants"' in (tmp_path / "decisions" / "0002-celery" / "index.html").read_text()


@pytest.mark.parametrize("link", ["[gone](gone.md)", "[gone](../gone.txt)", "[here](#nowhere)"])
def test_a_link_that_leads_nowhere_fails_it(tmp_path: Path, link: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# Page\n\n{link}\n")
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    config = {**yaml.safe_load(CONFIG.read_text()), "nav": ["index.md"]}
    (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump(config))
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode != 0
    assert "Aborted" in done.stderr + done.stdout, done.stdout + done.stderr
