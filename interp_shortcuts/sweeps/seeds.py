"""The seeds of one setting, trained side by side, each in a folder of its own.

A seed that fails is recorded as failed in its folder and handed back; it never stops the others.
What one run does is `training/`; what runs show is `timelines/`. Loads no torch until it trains.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.sweeps.dispatch import Observer, dispatch
from interp_shortcuts.sweeps.engines import Engine, InProcessEngine, cpu_count
from interp_shortcuts.sweeps.local_engine import LocalEngine
from interp_shortcuts.sweeps.progress import Progress
from interp_shortcuts.sweeps.worker import Assignment, Ending

_PART = re.compile(r"(\d+)(?:-(\d+))?")


@dataclass(frozen=True)
class SeedResult:
    """How one seed ended."""

    config: RunConfig
    path: Path
    status: str
    """The run's status: `finished`, `diverged`, or `failed` when training raised or its process
    died."""
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


def default_workers(n_runs: int, threads: int | None) -> int:
    """How many runs are trained at once unless told: as many as the CPUs hold, a thread each.

    Args:
        n_runs: How many there are.
        threads: Torch's thread count in each; None counts as one.
    """
    return max(1, min(n_runs, cpu_count() // (threads or 1)))


def train_seeds(
    configs: Iterable[RunConfig],
    *,
    out: Path | str,
    resume: bool = False,
    threads: int | None = None,
    workers: int | None = None,
    stack: bool | None = None,
    progress: bool = True,
    on_start: Callable[[RunConfig, Path], None] | None = None,
    on_end: Callable[[SeedResult], None] | None = None,
) -> list[SeedResult]:
    """Trains the runs, each into `out / run_folder_name(config)`.

    With several workers each run has a process; its result is, to the bit, that of the same run
    trained alone with the same thread count. A script that calls this must then do so under
    `if __name__ == "__main__":`. Where batches are small, the seeds of a setting are stacked into
    one vectorised step in this process instead; each then follows the run trained alone up to
    rounding (1e-5 in the loss over the first 50 steps).

    Args:
        configs: The runs, e.g. `[presets.max_parity_demo(seed) for seed in range(5)]`.
        out: The folder of the run folders.
        resume: Go on with interrupted runs, and leave finished ones as they are.
        threads: Torch's thread count for each run; another count differs in rounding. None: 1
            with several workers, else torch's own choice.
        workers: How many runs are trained at once; 1 trains in this process. None: as many as the
            CPUs hold, with `threads` each.
        stack: Whether the seeds of a setting are stacked. None: where it pays by the rule of
            `training.stacking_pays`, unless `workers` is given.
        progress: Show a progress bar: for each run, or with several workers over the runs.
        on_start: Called with the config and its folder before a run starts.
        on_end: Called with how it ended.

    Returns:
        One result per config, in order; those that failed or diverged have `ok` False.

    Raises:
        ConfigError: If `workers` or `threads` is below 1, stacked runs are to have several
            workers, or two configs are the same run.
    """
    for name, count in (("workers", workers), ("threads", threads)):
        if count is not None and count < 1:
            raise ConfigError(f"`{name}` must be at least 1; got {count}.")
    configs = list(configs)
    paths = {run_folder_name(config): Path(out) / run_folder_name(config) for config in configs}
    if len(paths) < len(configs):
        raise ConfigError("`configs` must be different runs; two of them are the same.")
    if stack and workers is not None and workers > 1:
        raise ConfigError(f"`workers` (={workers}) must be 1 for stacked runs.")
    if stack is None:
        stack = workers is None and _stacking_pays(configs)
    if stack:
        return _train_stacked(
            configs,
            paths=paths,
            resume=resume,
            threads=threads,
            progress=progress,
            on_start=on_start,
            on_end=on_end,
        )
    at_once = default_workers(len(configs), threads) if workers is None else workers
    alone = at_once == 1
    engine: Engine = InProcessEngine() if alone else LocalEngine(at_once)
    assignments = {
        key: Assignment(
            config,
            path,
            threads=threads if alone else threads or 1,
            resume=resume,
            progress=progress and alone,
        )
        for config, (key, path) in zip(configs, paths.items(), strict=True)
    }
    bar = Progress(assignments, label="seeds", done=0, shown=progress and not alone)
    seeds = _Seeds(assignments, bar, on_start=on_start, on_end=on_end)
    try:
        with engine.session():
            dispatch(assignments, engine, seeds, retry_failed=False)
    finally:
        bar.close()
    return [seeds.results[key] for key in assignments]


def _stacking_pays(configs: Sequence[RunConfig]) -> bool:
    """Whether there are several seeds of every setting, in all of which stacking pays."""
    settings = Counter(config.replace(seed=0, name="") for config in configs)
    if not settings or min(settings.values()) < 2:
        return False
    from interp_shortcuts.training.stacked import stacking_pays

    return all(stacking_pays(config) for config in settings)


def _train_stacked(
    configs: Sequence[RunConfig],
    *,
    paths: Mapping[str, Path],
    resume: bool,
    threads: int | None,
    progress: bool,
    on_start: Callable[[RunConfig, Path], None] | None,
    on_end: Callable[[SeedResult], None] | None,
) -> list[SeedResult]:
    """Setting after setting, all its seeds in step."""
    from interp_shortcuts.training.stacked import train_stacked

    settings: dict[RunConfig, list[RunConfig]] = {}
    for config in configs:
        settings.setdefault(config.replace(seed=0, name=""), []).append(config)
    results: dict[str, SeedResult] = {}
    for seeds in settings.values():
        outs = [paths[run_folder_name(config)] for config in seeds]
        if on_start is not None:
            for config, path in zip(seeds, outs, strict=True):
                on_start(config, path)
        try:
            ended = train_stacked(
                seeds, outs=outs, resume=resume, progress=progress, threads=threads
            )
        except Exception as error:  # what stops one setting does not stop the others
            ended = [error] * len(seeds)
        for config, path, run in zip(seeds, outs, ended, strict=True):
            if isinstance(run, Exception):
                result = SeedResult(config, path, "failed", run)
            else:
                result = SeedResult(config, path, run.status)
            results[run_folder_name(config)] = result
            if on_end is not None:
                on_end(result)
    return [results[run_folder_name(config)] for config in configs]


class _Seeds(Observer):
    """Turns what happens into results, and passes it on."""

    def __init__(
        self,
        assignments: Mapping[str, Assignment],
        bar: Progress,
        *,
        on_start: Callable[[RunConfig, Path], None] | None,
        on_end: Callable[[SeedResult], None] | None,
    ) -> None:
        self.results: dict[str, SeedResult] = {}
        self._assignments, self._bar = assignments, bar
        self._on_start, self._on_end = on_start, on_end

    def began(self, key: str) -> None:
        self._bar.began(key)
        one, tell = self._assignments[key], self._on_start
        if tell is not None:
            self._bar.aside(lambda: tell(one.config, one.path))

    def ended(self, key: str, ending: Ending, *, again: bool) -> None:
        self._bar.ended(key, ending, again=again)
        if again:
            return
        self.results[key] = result = seed_result(self._assignments[key], ending)
        tell = self._on_end
        if tell is not None and ending.status != "stopped":
            self._bar.aside(lambda: tell(result))

    def tick(self, running: Collection[str]) -> None:
        self._bar.tick(running)


def seed_result(assignment: Assignment, ending: Ending) -> SeedResult:
    """How a run ended, for the caller; one whose process died has failed."""
    status = "failed" if ending.status == "lost" else ending.status
    return SeedResult(assignment.config, assignment.path, status, ending.error)
