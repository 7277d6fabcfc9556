"""What tells the code of a plugin of another package: the distribution that offers it, and a digest of its modules.

A version alone does not: a plugin is changed without it while it is written, and where it is mounted as a file.
"""

import hashlib
import sys
from importlib import metadata
from types import ModuleType
from typing import Any

from dsched.framework.interface import PluginFactory

NO_SOURCE = "-"
"""Stands for the digest of a module that was not read from a file."""


def told(factory: PluginFactory, builds: type | None = None, package: metadata.Distribution | None = None) -> str:
    """The code of a plugin in a few words, e.g. ``gang 1.2 3f2a01b4c9d8``; equal where the code is.

    Args:
        builds: the class that a factory function returns, which may be of another module.
        package: the distribution that offers it, None where that is not known.
    """
    named = f"{package.name} {package.version} " if package is not None else ""
    names = dict.fromkeys(getattr(each, "__module__", None) for each in (factory, builds) if each is not None)
    digests = [_digest(sys.modules[name]) for name in names if name in sys.modules]
    return named + " ".join(digests or [NO_SOURCE])


def _digest(module: ModuleType) -> str:
    """Of the file as it is now; what the process runs, if that is when the module was loaded."""
    loader: Any = getattr(module, "__loader__", None)
    try:
        content = loader.get_data(module.__file__)
    except (AttributeError, OSError, TypeError):
        return NO_SOURCE
    return hashlib.sha256(content).hexdigest()[:12]
