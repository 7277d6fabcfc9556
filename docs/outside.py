"""Links from pages to files of the repository that are no pages, made links to where the repository is kept.

A hook of mkdocs.yml: on GitHub such links work as they are written, in the site they would lead nowhere.
"""

import logging
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
BRANCH = "blob/main"
LINK = re.compile(r"\]\(\.\./(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")

log = logging.getLogger("mkdocs.hooks.outside")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """The page with its links to files outside of ``docs`` changed; a file that is not there fails a strict build."""

    def changed(match: re.Match[str]) -> str:
        if not (ROOT / match["path"]).exists():
            log.warning("Doc file '%s' links to '../%s', which is not there.", page.file.src_path, match["path"])
        return f"]({config['repo_url'].rstrip('/')}/{BRANCH}/{match['path']}{match['anchor'] or ''})"

    return LINK.sub(changed, markdown)
