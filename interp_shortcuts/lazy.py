"""Names that load on first use (PEP 562), so that importing the package costs no torch.

Every subpackage's `__init__` lists its public names once, as `{name: module}`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_exports(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` for a package whose names load on first use.

    Args:
        package: The package's `__name__`.
        homes: For each public name, the module that defines it, relative to the package
            (`".trajectory"`), or `"."` + name + `":"` when the name is that module itself.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        if home.endswith(":"):
            value: Any = import_module(home[:-1], package)
        else:
            value = getattr(import_module(home, package), name)
        setattr(sys.modules[package], name, value)
        return value

    names = sorted(homes)
    return get, lambda: names, names
