"""The sweeps that a Python script defines: `sweep = Sweep(...)`, or several named `sweeps`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from interp_shortcuts.errors import ConfigError, InterpShortcutsError
from interp_shortcuts.sweeps.plan import Sweep
from interp_shortcuts.sweeps.worker import run_script


def load_sweeps(path: Path | str) -> tuple[Sweep, ...]:
    """Runs a script and returns its sweeps, in order.

    Args:
        path: The script. What it does under `if __name__ == "__main__":` is not done.

    Raises:
        ConfigError: If it is missing, fails, or defines no sweep, both `sweep` and `sweeps`, or two
            of one name.
    """
    path = Path(path)
    if not path.is_file():
        raise ConfigError(f"`{path}` is no file; give a Python script that defines a sweep.")
    try:
        names = run_script(path.resolve())
    except ValidationError as error:
        broken = "; ".join(
            item["msg"].removeprefix("Value error, ")
            if item["type"] == "value_error"
            else f"`{'.'.join(map(str, item['loc']))}` (={item['input']!r}): {item['msg']}"
            for item in error.errors()
        )
        raise ConfigError(f"'{path}': {broken}") from error
    except InterpShortcutsError as error:
        raise ConfigError(f"'{path}': {error}") from error
    except Exception as error:
        raise ConfigError(f"'{path}' failed: {type(error).__name__}: {error}") from error
    if "sweep" in names and "sweeps" in names:
        raise ConfigError(
            f"'{path}' must define one of `sweep` and `sweeps`; it has both. Put all of them into "
            "`sweeps`, and call what is no sweep otherwise."
        )
    found = names.get("sweeps", names.get("sweep"))
    if isinstance(found, Mapping):
        found = tuple(found.values())
    listed = tuple(found) if isinstance(found, list | tuple) else (found,)
    sweeps = tuple(sweep for sweep in listed if isinstance(sweep, Sweep))
    if not sweeps or len(sweeps) < len(listed):
        raise ConfigError(
            f"'{path}' must define `sweep = Sweep(...)`, or several in a dict or list `sweeps`; "
            f"it has {'neither' if found is None else repr(found)}."
        )
    if len({sweep.name for sweep in sweeps}) < len(sweeps):
        raise ConfigError(f"'{path}': two sweeps have the same `name`; their folder is its.")
    return sweeps
