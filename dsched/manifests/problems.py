"""Problems found in manifests, collected so that a call tells all of them at once."""

from collections.abc import Callable, Iterable

from dsched.errors import ManifestError

SHOWN = 20
Report = Callable[[str, str], None]
"""Takes a problem: the field's path and what is wrong there."""


class Problems:
    """Collects problems; each names its file and document, its field, and what is wrong."""

    def __init__(self) -> None:
        self._found: list[str] = []

    def __len__(self) -> int:
        return len(self._found)

    def add(self, origin: str, what: str) -> None:
        """Note a problem; ``what`` begins with the field's path where there is one."""
        self._found.append(f"{origin}: {what}")

    def take(self, error: ManifestError) -> None:
        """Note the problems of an error."""
        self._found += error.problems

    def raise_any(self) -> None:
        """
        Raises:
            ManifestError: there are problems; the first `SHOWN` are named and the rest counted.
        """
        if not self._found:
            return
        rest = len(self._found) - SHOWN
        more = [f"… and {rest} more problem{'s' if rest > 1 else ''}"] if rest > 0 else []
        raise ManifestError([*self._found[:SHOWN], *more])


def said(wrong: str, path: str, report: Report) -> None:
    """Report what is wrong with a field; nothing where that is ``""``."""
    if wrong:
        report(path, wrong)


def distinct(given: Iterable[str], path: str, report: Report, field: str = "") -> None:
    """Report items that are given twice; of items with fields, ``field`` is the one that they differ by."""
    seen: set[str] = set()
    for index, value in enumerate(given):
        if value and value in seen:
            report(f"{path}[{index}]{'.' if field else ''}{field}", f'"{value}" is given twice')
        seen.add(value)
