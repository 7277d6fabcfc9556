"""Each measure of scripts/structure on sources that are made up here."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from scripts import checkout
from scripts.structure import __main__ as command
from scripts.structure import sources, walks
from scripts.structure.sources import Module


def written(root: Path, files: dict[str, str]) -> list[Module]:
    """The modules of ``dsched`` and ``workers`` among these files."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return sources.read(root)


# -- imports -----------------------------------------------------------------------------------------------------------


def test_every_form_of_an_import_is_found(tmp_path: Path) -> None:
    files = {
        "dsched/__init__.py": "",
        "dsched/a.py": "",
        "dsched/room/__init__.py": "from . import b",
        "dsched/room/b.py": "",
        "dsched/room/c.py": """
            import dsched.a
            import json
            from dsched.room import b, THING
            from dsched.room.d import Name
            from .b import Other
            from .. import a

            def late():
                from dsched.room import e
            """,
        "dsched/room/d.py": "",
        "dsched/room/e.py": "",
    }
    modules = {module.name: module for module in written(tmp_path, files)}
    expected = {"dsched.a", "dsched.room", "dsched.room.b", "dsched.room.d", "dsched.room.e"}
    assert sources.imports(modules["dsched.room.c"], modules) == expected
    assert sources.imports(modules["dsched.room"], modules) == {"dsched.room.b"}


def test_circles_are_found_through_imports_for_the_type_checker(tmp_path: Path) -> None:
    files = {
        "dsched/one.py": "from dsched import two",
        "dsched/two.py": "from dsched.three import Three",
        "dsched/three.py": """
            from typing import TYPE_CHECKING
            if TYPE_CHECKING:
                from dsched.one import One
            """,
        "dsched/apart.py": "from dsched import one",
        "dsched/left.py": "import workers.right",
        "workers/right.py": "import dsched.left",
    }
    assert sources.circles(written(tmp_path, files)) == [
        ("dsched.left", "workers.right"),
        ("dsched.one", "dsched.three", "dsched.two"),
    ]


def test_no_circle_where_imports_run_one_way(tmp_path: Path) -> None:
    files = {"dsched/one.py": "from dsched import two, three", "dsched/two.py": "import dsched.three"}
    assert sources.circles(written(tmp_path, {**files, "dsched/three.py": ""})) == []


def test_a_single_importer_is_one_file_that_is_no_test(tmp_path: Path) -> None:
    files = {
        "dsched/__init__.py": "",
        "dsched/once.py": "",
        "dsched/twice.py": "",
        "dsched/measured.py": "",
        "dsched/never.py": "",
        "dsched/main.py": "from dsched import once, twice, measured\ndef f():\n    from dsched.once import x",
        "dsched/room/__init__.py": "from dsched.twice import y",
        "workers/__main__.py": "import dsched.room",
        "benchmarks/speed.py": "from dsched import measured",
        "tests/test_once.py": "from dsched import once",
    }
    modules = written(tmp_path, files)
    others = sources.read(tmp_path, sources.IMPORTERS)
    found = [(module.name, importer) for module, importer in sources.single_importers(modules, others)]
    assert found == [("dsched.once", "dsched.main")]


# -- constructors and functions ----------------------------------------------------------------------------------------

CROWDED = """
    import enum
    from typing import NewType
    Place = NewType("Place", str)

    class Mode(enum.StrEnum):
        FAST = "fast"

    class Plain:
        def __init__(self, a: int, b: str | None, c: Mode, d: Place, e: Path, f: Mapping[str, int],
                     g: LeaderSettings, h: "SchedulerConfiguration", i: tuple[Place, ...]) -> None: ...

    class Eight:
        def __init__(self, a: A, b: B | None, c: Callable[[], None], d: Mapping[str, D], *, e: E, f: F, g,
                     h: "H" = None, number: int = 0) -> None: ...

    class Seven:
        def __init__(self, a: A, b: B, c: C, d: D, e: E, f: F, g: G, number: int, place: Place) -> None: ...

    @dataclass(frozen=True)
    class Parts:
        shared: ClassVar[Shared]
        a: A
        b: B
        c: C
        d: D
        e: E
        f: F
        g: G
        h: H
        number: int

    class Value(msgspec.Struct):
        a: A
        b: B
        c: C
        d: D
        e: E
        f: F
        g: G
        h: H
    """


def test_collaborators_are_what_is_no_plain_value(tmp_path: Path) -> None:
    found = sources.crowded(written(tmp_path, {"dsched/parts.py": CROWDED}))
    assert [(each.what, each.size) for each in found] == [
        ("Eight(a, b, c, d, e, f, g, h)", 8),
        ("Parts(a, b, c, d, e, f, g, h)", 8),
    ]


def test_long_functions_are_counted_from_def_to_end_without_commands(tmp_path: Path) -> None:
    body = "\n".join(["    x = 1"] * 3)
    text = f"""\
def fits():
{body}

def long():
    '''Four lines and this one.'''
{body}

class Thing:
    @decorated
    async def method(self):
        def inner():
            {"x = 1; " * 5}
            return 1
        y = inner()
        return y

def command():
    '''Declares its options one a line.'''
{body}

@app.callback()
def group():
    '''Too.'''
{body}

app.command(epilog="Example")(command)
"""
    found = sources.long_functions(written(tmp_path, {"dsched/functions.py": text}), most=4)
    assert [(each.what, each.size) for each in found] == [("Thing.method", 6), ("long", 5)]


# -- what tests touch --------------------------------------------------------------------------------------------------

PRODUCT = """
    _limit = 3

    def _helper(): ...

    class Queue:
        _kept: int = 0

        def __init__(self):
            self._pods = []
            self._own = 1

        def _pop(self): ...
    """
TOUCHING = """
    import os
    from dsched import queue
    from dsched.queue import Queue, _helper

    class Fake:
        def __init__(self):
            self._own = 2
            self._pods_of_mine = []

        def look(self, queue: Queue):
            return self._own, queue._own, self._pods

    def test_it(monkeypatch):
        made = Queue()
        assert made._pods == [] and made._pop() is None
        made._pods = [made._kept, queue._limit]
        os._exit(made.__dict__)
        monkeypatch.setattr(made, "_pop", None)
        monkeypatch.setattr(made, "shown", None)
    """


def test_private_members_are_counted_each_time_they_are_touched(tmp_path: Path) -> None:
    modules = written(tmp_path, {"dsched/queue.py": PRODUCT, "tests/test_queue.py": TOUCHING, "tests/test_no.py": ""})
    tests = sources.read(tmp_path, ["tests"])
    (found,) = sources.touched(modules, tests)
    assert (found.where, found.size) == ("tests/test_queue.py", 6)
    assert found.what == "_pods 2, _helper, _kept, _limit, _pop"
    assert [(each.what, each.size) for each in sources.replaced(modules, tests)] == [("_pop", 1)]


# -- sizes -------------------------------------------------------------------------------------------------------------


def test_sizes_by_room_and_file(tmp_path: Path) -> None:
    files = {
        "dsched/__init__.py": "x = 1\n",
        "dsched/leader/__init__.py": "",
        "dsched/leader/audit/compare.py": "a = 1\nb = 2\n",
        "dsched/leader/main.py": "a = 1\nb = 2\nc = 3\n",
        "workers/app.py": "a = 1\nb = 2\nc = 3\nd = 4\n",
    }
    modules = written(tmp_path, files)
    assert sources.rooms(modules) == {"dsched": (1, 1), "dsched.leader": (3, 5), "workers": (1, 4)}
    assert [(each.where, each.size) for each in sources.biggest(modules, 2)] == [
        ("workers/app.py", 4),
        ("dsched/leader/main.py", 3),
    ]


# -- walks -------------------------------------------------------------------------------------------------------------


def test_a_change_of_file_is_a_call_in_another_file_than_the_call_before() -> None:
    assert walks.way(["a", "a", "b", "a", "c", "c"]) == {"calls": 6, "files": 3, "changes": 3}
    assert walks.way([]) == {"calls": 0, "files": 0, "changes": 0}


class InnerCycle:
    """Asks a filter."""

    def decide(self, ask: Callable[[], None]) -> None:
        [each() for each in [ask]]


class OuterCycle:
    """Stands around it."""

    def decide(self, ask: Callable[[], None]) -> None:
        InnerCycle().decide(ask)


class Batches:
    """Has batches decided."""

    def decide(self, ask: Callable[[], None]) -> None:
        OuterCycle().decide(ask)


def test_frames_are_counted_from_what_is_wrapped_around_the_cycle() -> None:
    found: list[tuple[list[str], int]] = []

    def ask() -> None:
        found.append(walks.frames_from_decide(sys._getframe(), Path(__file__).parent))

    Batches().decide(ask)
    ((frames, number),) = found
    names = [frame.removeprefix("test_structure.py ") for frame in frames]
    assert names[:3] == ["Batches.decide", "OuterCycle.decide", "InnerCycle.decide"]
    assert [name.rpartition(".")[2] for name in names[3:]] == ["ask"], "a comprehension is no frame"
    assert number == 3
    ask()
    assert found[-1] == ([], 0)


def test_calls_are_counted_once_each_without_comprehensions() -> None:
    seen: list[str] = []

    def twice(number: int) -> int:
        return sum([number for _ in range(2)])

    with walks.profiled(lambda frame: seen.append(frame.f_code.co_name)):
        twice(1)
        twice(2)
    assert seen.count("twice") == 2
    assert "<listcomp>" not in seen
    twice(3)
    assert seen.count("twice") == 2


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_figures_stand_side_by_side() -> None:
    text = command.table({"abc": {"modules": 4, command.SINGLE: None}, "here": {"modules": 1000, command.SINGLE: 3}})
    assert [line.split() for line in text.splitlines()] == [
        ["abc", "here", "at", "most"],
        ["modules", "4", "1000"],
        [*command.SINGLE.split(), "-", "3", "90"],
    ]


def test_another_revision_is_checked_out_for_as_long_as_it_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*arguments: str) -> None:
        name = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", str(tmp_path), *name, *arguments], check=True, capture_output=True)

    git("init")
    for number in (1, 2):
        written(tmp_path, {f"dsched/file{number}.py": "x = 1\n"})
        git("add", ".")
        git("commit", "-m", f"commit {number}")
    monkeypatch.setattr(checkout, "ROOT", tmp_path)
    with command.checkout("HEAD~1") as folder:
        before = command.measured(folder, running=False)
    now = command.measured(tmp_path, running=False)
    assert (before.figures[command.MODULES], now.figures[command.MODULES]) == (1, 2)
    assert before.figures[command.FRAMES] is None
    assert not folder.exists()
    worktrees = subprocess.run(
        ["git", "-C", str(tmp_path), "worktree", "list"], capture_output=True, text=True, check=True
    )
    assert len(worktrees.stdout.splitlines()) == 1


def test_a_revision_that_is_not_there_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    monkeypatch.setattr(checkout, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match="no revision nowhere"), command.checkout("nowhere"):
        pass
