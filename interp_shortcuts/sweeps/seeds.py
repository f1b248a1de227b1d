"""The seeds of one setting, trained one after another, each in a folder of its own.

A seed that fails is recorded as failed in its folder and handed back; it never stops the others.
What one run does is `training/`; what runs show is `timelines/`. Loads no torch until it trains.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.runs.store import MANIFEST_FORMAT, RunFolder

_PART = re.compile(r"(\d+)(?:-(\d+))?")


@dataclass(frozen=True)
class SeedResult:
    """How one seed ended."""

    config: RunConfig
    path: Path
    status: str
    """The run's status: `finished`, `diverged`, or `failed` when training raised."""
    error: Exception | None = None
    """What training raised, if it failed."""

    @property
    def ok(self) -> bool:
        """Whether the run was trained to its end."""
        return self.status == "finished"


def parse_seeds(text: str) -> tuple[int, ...]:
    """The seeds that a text such as `0-4`, `0,3,7` or `0-2,9` names, in its order, each once.

    Raises:
        ConfigError: If a part is neither a number nor a rising range.
    """
    seeds: list[int] = []
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        first, last = (match[1], match[2] or match[1]) if match else ("1", "0")
        if int(last) < int(first):
            raise ConfigError(
                "`seeds` must be numbers and rising ranges, such as '0-4', '0,3,7' or '0-2,9'; "
                f"got {text!r}."
            )
        seeds += range(int(first), int(last) + 1)
    return tuple(dict.fromkeys(seeds))


def run_folder_name(config: RunConfig) -> str:
    """`<preset>-<setting>-seed<k>`; the setting is an id that all seeds of it share.

    So `runs/max-parity-demo-1a2b3c4d-seed*` are the seeds of one setting. The id is the first 8
    digits of the run id at seed 0.
    """
    setting = config.replace(seed=0).run_id[:8]
    return f"{(config.name or 'run').replace('_', '-')}-{setting}-seed{config.seed}"


def train_seeds(
    configs: Iterable[RunConfig],
    *,
    out: Path | str,
    resume: bool = False,
    threads: int | None = None,
    progress: bool = True,
    on_start: Callable[[RunConfig, Path], None] | None = None,
    on_end: Callable[[SeedResult], None] | None = None,
) -> list[SeedResult]:
    """Trains the runs in order, each into `out / run_folder_name(config)`.

    Args:
        configs: The runs, e.g. `[presets.max_parity_demo(seed) for seed in range(5)]`.
        out: The folder of the run folders.
        resume: Go on with interrupted runs, and leave finished ones as they are.
        threads: Torch's thread count; another count differs in rounding.
        progress: Show a progress bar for each run.
        on_start: Called with the config and its folder before a run starts.
        on_end: Called with how it ended.

    Returns:
        One result per config, in order; those that failed or diverged have `ok` False.
    """
    from interp_shortcuts.training.loop import train

    results = []
    for config in configs:
        path = Path(out) / run_folder_name(config)
        if on_start is not None:
            on_start(config, path)
        try:
            run = train(config, out=path, resume=resume, threads=threads, progress=progress)
            result = SeedResult(config, path, run.status)
        except Exception as error:  # whatever went wrong: the other seeds go on
            _record_failure(config, path, error)
            result = SeedResult(config, path, "failed", error)
        results.append(result)
        if on_end is not None:
            on_end(result)
    return results


def _record_failure(config: RunConfig, path: Path, error: Exception) -> None:
    """Leaves a folder that says `failed` where training stopped before it made one itself."""
    folder = RunFolder(path)
    if not folder.is_empty:
        return  # training wrote its own status, or the folder is not ours
    folder.create()
    folder.write_config(config)
    folder.write_manifest(
        {
            "format": MANIFEST_FORMAT,
            "run_id": config.run_id,
            "status": "failed",
            "error": f"{type(error).__name__}: {error}",
        }
    )
