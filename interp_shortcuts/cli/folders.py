"""Which run folders the paths on the command line mean.

What is in a run folder is `runs/store`'s business.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.runs.store import RunFolder


def run_folders(
    paths: Sequence[Path], *, on_skip: Callable[[Path], None] | None = None
) -> list[Path]:
    """The run folders among the paths and directly inside them, each once, seed 2 before seed 10.

    Args:
        paths: Run folders, folders of run folders, or patterns that the shell did not expand.
        on_skip: Called with each path that is there but neither is nor holds a run, as when
            `runs/*` names an index page beside the runs.

    Raises:
        ConfigError: If a path or pattern leads to nothing, or no path leads to a run.
    """
    if not paths:
        raise ConfigError("give run folders, or a folder of run folders, such as `runs/`.")
    found: dict[Path, None] = {}
    for path in [match for given in paths for match in _matches(given)]:
        runs = _runs_at(path)
        found |= dict.fromkeys(runs)
        if not runs and on_skip is not None:
            on_skip(path)
    if not found:
        raise ConfigError(
            f"no run folder (one with config.json) in {_listed(paths)}; "
            "train one with `interp-shortcuts train PRESET --out FOLDER`."
        )
    return list(found)


def index_folder(paths: Sequence[Path], runs: Sequence[Path]) -> Path | None:
    """Where an index over the runs belongs: the folder they all lie in; none for a single run.

    A folder of runs that was named itself gets an index even when it holds one run only.
    """
    parents = {run.parent for run in runs}
    named_itself = len(runs) == 1 and runs[0] in {Path(path) for path in paths}
    return parents.pop() if len(parents) == 1 and not named_itself else None


def _runs_at(path: Path) -> list[Path]:
    if RunFolder(path).looks_like_a_run:
        return [path]
    if not path.is_dir():
        return []
    inside = [child for child in path.iterdir() if RunFolder(child).looks_like_a_run]
    return sorted(inside, key=_by_number)


def _matches(path: Path) -> list[Path]:
    if path.exists():
        return [path]
    matches = sorted((Path(match) for match in glob.glob(str(path))), key=_by_number)
    if not matches:
        raise ConfigError(
            f"`{path}` matches nothing; give run folders, or a folder of run folders."
        )
    return matches


def _by_number(path: Path) -> list[tuple[int, str]]:
    """Digits count as numbers: seed2 comes before seed10."""
    parts = re.findall(r"\d+|\D+", path.name)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def _listed(paths: Sequence[Path]) -> str:
    return ", ".join(f"`{path}`" for path in paths)
