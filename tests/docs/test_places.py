"""What pages name is there: files, dotted names, scripts, Redis keys, sections, links."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from dsched.cluster.standalone import keys as cluster_keys
from dsched.state import keys as state_keys

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NEWCOMERS = [DOCS / name for name in ("glossary.md", "life-of-a-pod.md", "life-of-a-plugin-call.md")]
DECISIONS = sorted((DOCS / "decisions").glob("*.md"))
PAGES = [*NEWCOMERS, *DECISIONS, DOCS / "critiques.md", DOCS / "architecture.md", ROOT / "tests" / "README.md"]
CODE = re.compile(r"`([^`\n]+)`")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
PATH = re.compile(r"^(dsched|workers|tests|benchmarks|docs|examples|scripts|deploy|\.ci)/[\w./*-]*$")
DOTTED = re.compile(r"^[a-z_]+(\.\w+)+$")
SCRIPT = re.compile(r"^\w+\.lua$")
KEY = re.compile(r"^[a-z]+(:[a-z]*)+$")
ROOMS = {path.stem for path in (ROOT / "dsched").iterdir() if path.suffix in ("", ".py")} | {"workers", "dsched"}
ON_THE_BROKER = "celery:"
"""Celery's own keys: described in docs/redis.md above its table."""


def quoted(text: str) -> list[str]:
    """What a page has in backticks, blocks left out."""
    return CODE.findall(FENCED.sub("", text))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def names(body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """What a module or a class defines or takes in, attributes that its methods set included."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Assign):
            yield from ((each.id, node) for each in node.targets if isinstance(each, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node
        if isinstance(node, ast.FunctionDef):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
                    yield inner.attr, node


def found(dotted: str) -> bool:
    """Whether there is such a module, or such a name in it."""
    words = dotted.split(".")
    folder = ROOT if words[0] in ("dsched", "workers") else ROOT / "dsched"
    while words and (folder / words[0]).is_dir():
        folder /= words.pop(0)
    module = folder / f"{words[0]}.py" if words and (folder / f"{words[0]}.py").exists() else folder / "__init__.py"
    words = words[1:] if module.name != "__init__.py" else words
    body = tree(module).body
    for word in words:
        known = dict(names(body))
        if word not in known:
            return False
        body = getattr(known[word], "body", [])
    return True


def missing(text: str) -> list[str]:
    """What a text names that there is not."""
    known_keys = {key.name for key in (*state_keys.ALL, *cluster_keys.ALL)}
    table = (DOCS / "redis.md").read_text()
    gone: list[str] = []
    for each in quoted(text):
        if PATH.match(each):
            there = bool(list(ROOT.glob(each.rstrip("/"))))
        elif SCRIPT.match(each):
            there = bool(list((ROOT / "dsched").rglob(each)))
        elif DOTTED.match(each) and each.split(".")[0] in ROOMS:
            there = found(each)
        elif each.startswith(ON_THE_BROKER):
            there = each in table
        elif KEY.match(each) and each.split(":")[0] + ":" in {key.partition(":")[0] + ":" for key in known_keys}:
            there = each in known_keys and f"| `{each}` |" in table
        else:
            continue
        if not there:
            gone.append(each)
    return gone


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_is_there(page: Path) -> None:
    assert missing(page.read_text()) == []


@pytest.mark.parametrize(
    "text",
    [
        "`dsched/leader/gone.py`",
        "`leader.term.LeaderTerm.gone`",
        "`leader.gone.Term`",
        "`scheduler.cycle.Gone`",
        "`workers.binder.Binder.gone`",
        "`gone.lua`",
        "`queue:gone`",
        "`cluster:gone`",
        "`celery:gone`",
    ],
)
def test_what_is_gone_is_noticed(text: str) -> None:
    assert len(missing(f"It lives in {text}.")) == 1


def test_what_is_there_is_found() -> None:
    text = "`dsched/leader/term.py` `workers.binder.bind` `framework.status.Scope` `reserve.lua` `queue:active` `pod:`"
    assert missing(text + " `celery:binders` `cluster:log` `scheduler.queue.QueuedPod.attempts` `max` `a: b`") == []


def rows(page: Path) -> list[list[str]]:
    """The cells of a page's only table, its head left out."""
    lines = [line for line in page.read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def test_the_glossary_has_each_word_once_and_where_it_lives() -> None:
    table = rows(DOCS / "glossary.md")
    words = [row[0].lower() for row in table]
    assert len(words) > 80
    assert words == sorted(set(words))
    assert [row[0] for row in table if len(row) != 4 or not PATH.match(row[3].strip("`"))] == []


def in_redis(text: str) -> dict[str, list[str]]:
    """By station of a pod's life, the words in backticks of its paragraph *In Redis*."""
    stations = re.split(r"^## (\d+\. .*)$", text, flags=re.MULTILINE)[1:]
    found = {}
    for title, body in zip(stations[::2], stations[1::2], strict=True):
        (paragraph,) = re.findall(
            r"^\*In Redis:\*(.*?)\n\n", body.partition("\n## ")[0] + "\n\n", re.MULTILINE | re.DOTALL
        )
        found[title] = [each for each in quoted(paragraph) if re.match(r"^[a-z:]+$", each)]
    return found


def test_every_station_of_a_pod_says_what_is_in_redis_and_who_may_be_killed() -> None:
    text = (DOCS / "life-of-a-pod.md").read_text()
    stations = in_redis(text)
    assert len(stations) == 15
    assert len({key for named in stations.values() for key in named}) > 15
    bodies = re.split(r"^## \d+\. ", text, flags=re.MULTILINE)[1:]
    silent = [body.splitlines()[0] for body in bodies[:-1] if not re.search(r"^\*(Killed|Lost)", body, re.MULTILINE)]
    assert silent == []


def test_what_stands_in_redis_there_is_a_key_or_the_name_of_a_queue() -> None:
    known = {key.name for key in (*state_keys.ALL, *cluster_keys.ALL)}
    queues = {"reserved", "waiting", "inflight", "binding"}
    named = {key for keys in in_redis((DOCS / "life-of-a-pod.md").read_text()).values() for key in keys}
    assert {key for key in named if not key.startswith(ON_THE_BROKER)} - known - queues == set()


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and mkdocs make them."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", heading.lower())) for heading in headings}


READMES = [
    *ROOT.glob("*.md"),
    *ROOT.glob("examples/**/README.md"),
    ROOT / "tests" / "README.md",
    ROOT / "benchmarks" / "README.md",
    *DOCS.rglob("*.md"),
]


def broken(page: Path) -> list[str]:
    """Relative links of a page that lead nowhere."""
    gone: list[str] = []
    for link in LINK.findall(FENCED.sub("", page.read_text())):
        if re.match(r"^[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            gone.append(link)
    return gone


@pytest.mark.parametrize("page", READMES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert broken(page) == []


@pytest.mark.parametrize("link", ["[gone](gone.md)", "[gone](#gone)", "[gone](page.md#gone)"])
def test_a_link_that_leads_nowhere_is_noticed(link: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# There\n\n[there](#there) [too](page.md#there) {link}\n")
    assert len(broken(page)) == 1


PROCESS_WIDE = {
    "signal.signal",
    "signal.pthread_sigmask",
    "signal.setitimer",
    "gc.set_threshold",
    "gc.disable",
    "gc.freeze",
    "sys.setswitchinterval",
    "faulthandler.enable",
    "faulthandler.dump_traceback_later",
    "logging.captureWarnings",
    "warnings.filterwarnings",
    "warnings.simplefilter",
    "os.umask",
    "locale.setlocale",
    "setattr",
}
"""Calls that set something for the whole process."""
HARMLESS = {
    "dsched/cluster/standalone/claims.py",
    "dsched/framework/pod_groups.py",
    "dsched/framework/table.py",
}
"""Two have an empty mapping that stays so, the last one sets attributes of its own objects by name."""


def imported(module: ast.Module) -> set[str]:
    """Names that a module has from imports."""
    return {
        (alias.asname or alias.name.partition(".")[0])
        for node in ast.walk(module)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }


def root(node: ast.expr) -> ast.expr:
    """What an attribute or an item is of, in the end."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node


def process_wide(module: ast.Module) -> bool:
    """Whether a module writes into what it has imported, keeps what changes in a name of its own, or sets something for
    the whole process."""
    foreign = imported(module)
    for node in ast.walk(module):
        targets = node.targets if isinstance(node, ast.Assign) else []
        for target in targets:
            owner = root(target)
            if owner is not target and isinstance(owner, ast.Name) and owner.id in foreign:
                return True
        if isinstance(node, ast.Call) and ast.unparse(node.func) in PROCESS_WIDE:
            return True
    for node in module.body:
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if isinstance(value, ast.List | ast.Dict | ast.Set) and not ast.unparse(value).strip("[]{}"):
            return True
    return False


def test_process_wide_state_is_in_the_table() -> None:
    section = (DOCS / "architecture.md").read_text().partition("## Process-wide state and patches")[2]
    section = section.partition("\n## ")[0]
    files = [*(ROOT / "dsched").rglob("*.py"), *(ROOT / "workers").rglob("*.py")]
    found = {str(path.relative_to(ROOT)) for path in files if process_wide(tree(path))} - HARMLESS
    assert len(found) > 10
    assert sorted(path for path in found if f"`{path}`" not in section) == []


@pytest.mark.parametrize(
    "text",
    ["import redis\nredis.Redis.x = 1", "import signal\nsignal.signal(1, 2)", "_kept: dict[str, int] = {}"],
)
def test_process_wide_state_is_noticed(text: str) -> None:
    assert process_wide(ast.parse(text))


def test_what_an_object_keeps_is_not_process_wide() -> None:
    text = "import gc\nNAMES = {'a': 1}\nclass Kept:\n    def __init__(self):\n        self.names = {}\n"
    assert not process_wide(ast.parse(text))


def test_decisions_are_numbered_in_the_index_and_have_the_same_parts() -> None:
    pages = [page for page in DECISIONS if page.name != "README.md"]
    index = (DOCS / "decisions" / "README.md").read_text()
    assert len(pages) >= 18
    for number, page in enumerate(pages, start=1):
        text = page.read_text()
        title = text.splitlines()[0].removeprefix("# ")
        assert page.name.startswith(f"{number:04}-")
        assert title.startswith(f"{number}. ")
        assert f"| {number} | [{title.partition('. ')[2]}]({page.name}) |" in index
        assert re.findall(r"^\*\*(\w+)\.\*\*", text, re.MULTILINE) == ["Context", "Decision", "Consequences", "Figures"]
        assert len(text.splitlines()) <= 40, "half a page"
