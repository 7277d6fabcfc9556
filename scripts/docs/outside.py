"""Links from pages to files of the repository that are no pages, made links to where the repository is kept.

A hook of mkdocs.yml: on GitHub such links work as they are written, in the site they would lead nowhere.
"""

import logging
import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2].resolve()
DOCS = ROOT / "docs"
BRANCH = "blob/main"
LINK = re.compile(r"\]\((?P<path>\.\./[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")

log = logging.getLogger("mkdocs.hooks.outside")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """The page with its links to files outside of ``docs`` changed; a file that is not there fails a strict build."""

    def changed(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(DOCS / page.file.src_path / ".." / match["path"]))
        if target.is_relative_to(DOCS):  # from a page in a folder to another page
            return match[0]
        path = target.relative_to(ROOT).as_posix()
        if not target.exists():
            log.warning("Doc file '%s' links to '%s', which is not there.", page.file.src_path, path)
        return f"]({config['repo_url'].rstrip('/')}/{BRANCH}/{path}{match['anchor'] or ''})"

    return LINK.sub(changed, markdown)
