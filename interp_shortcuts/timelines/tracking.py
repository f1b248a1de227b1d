"""One pass along a trajectory: what is missing, in which order it is measured, when it is saved.

Measures of weights are taken over many checkpoints at once, the others share one forward pass at
each. What is kept where is left to `cache`, the result to `tracker`, other processes to
`processes`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

import xarray as xr
from tqdm.auto import tqdm

from interp_shortcuts.measures.along import CHUNK, SECONDS_BEFORE_BAR, along_steps, located
from interp_shortcuts.measures.base import Measure, WeightsMeasure
from interp_shortcuts.models.any_model import build_any, load_any
from interp_shortcuts.runs.trajectory import Trajectory
from interp_shortcuts.timelines.cache import Kept, MeasureCache
from interp_shortcuts.timelines.cadence import due, marked
from interp_shortcuts.timelines.measured import Measured, require_dataset
from interp_shortcuts.timelines.processes import Done, Job, Pending, Processes, shared_threads

SECONDS_BETWEEN_SAVES = 15.0


class Tracking:
    """One call of `track`: what is missing, in which order it is measured, when it is saved."""

    def __init__(
        self,
        trajectory: Trajectory,
        measures: Sequence[Measure],
        cadence: Mapping[str, int],
        cache: MeasureCache | None,
        kept: Kept,
        *,
        progress: bool,
        workers: int = 1,
    ) -> None:
        self.trajectory = trajectory
        self.task = trajectory.task
        self.found = {
            measure.key: Measured(measure, kept.parts.get(measure.key)) for measure in measures
        }
        self.cadence = {measure.key: cadence[measure.name] for measure in measures}
        self.asked = {key: due(trajectory.steps, every) for key, every in self.cadence.items()}
        self.cache = cache
        self.kept = kept
        self.progress = progress
        self.workers = workers
        self._saved = time.monotonic()
        self._measured_any = False

    def missing(self) -> dict[str, list[int]]:
        """Steps still to be measured, by measure key; measures that lack nothing are left out."""
        known = {key: item.steps for key, item in self.found.items()}
        gaps = {
            key: [step for step in steps if step not in known[key]]
            for key, steps in self.asked.items()
        }
        return {key: lacking for key, lacking in gaps.items() if lacking}

    def run(self) -> None:
        """Measures what is missing; what is there is saved every now and then, and on an error."""
        missing = self.missing()
        if not missing:
            return
        total = sum(map(len, missing.values()))
        bar = tqdm(
            desc="tracking",
            total=total,
            unit="measurement",
            disable=not self.progress,
            delay=SECONDS_BEFORE_BAR,
            leave=False,
        )
        try:
            for n_measured in self._measure(missing):
                self._measured_any = True
                bar.update(n_measured)
                if time.monotonic() - self._saved > SECONDS_BETWEEN_SAVES:
                    self._keep()
        except BaseException:
            if self._measured_any:
                self._keep()
            raise
        finally:
            bar.close()

    def results(self) -> list[xr.Dataset]:
        """What each measure gave at the steps that it was asked about."""
        return [
            marked(item.dataset(self.asked[key]), self.cadence[key])
            for key, item in self.found.items()
        ]

    def store(self) -> None:
        """Writes the finished timeline, unless the one on disk has all of it."""
        if self.cache is not None and (self._measured_any or not self.kept.has(self.asked)):
            self.cache.write(self.cadence, self._all_parts(), steps=self.trajectory.steps)

    def _measure(self, missing: dict[str, list[int]]) -> Iterator[int]:
        """Measures of weights first, many checkpoints at a time; yields how many it took."""
        together: dict[tuple[int, ...], list[WeightsMeasure]] = {}
        one_by_one = {}
        for key, steps in missing.items():
            measure = self.found[key].measure
            if isinstance(measure, WeightsMeasure):
                together.setdefault(tuple(steps), []).append(measure)
            else:
                one_by_one[key] = steps
        for steps, measures in together.items():
            for start in range(0, len(steps), CHUNK):
                yield from self._measure_weights(measures, steps[start : start + CHUNK])
        yield from self._measure_activations(one_by_one)

    def _measure_weights(
        self, measures: Sequence[WeightsMeasure], steps: Sequence[int]
    ) -> Iterator[int]:
        weights = self.trajectory.stacked(steps)
        hashes = {step: self.trajectory.hash(step) for step in steps}
        for measure in measures:
            try:
                results = require_dataset(measure, measure.of_weights(weights, self.task))
            except Exception:
                for step in steps:  # once more, one at a time, to name the step that fails
                    with located(measure.name, step):
                        one = self.trajectory.stacked([step])
                        require_dataset(measure, measure.of_weights(one, self.task))
                raise
            joined = along_steps([results], steps, constant=measure.constant, dim="checkpoint")
            self.found[measure.key].add(steps, hashes, joined)
            yield len(steps)

    def _measure_activations(self, missing: dict[str, list[int]]) -> Iterator[int]:
        lacking = {key: set(steps) for key, steps in missing.items()}
        steps = sorted(set().union(*lacking.values()))
        if not steps:
            return
        pending: Pending = deque(
            (step, frozenset(key for key in lacking if step in lacking[key])) for step in steps
        )
        measures = tuple(item.measure for key, item in self.found.items() if key in lacking)
        job = Job(self.trajectory.spec, self.task, measures)
        n_others = min(self.workers, len(steps)) - 1
        if n_others < 1:
            for done in self._measured_here(job, pending):
                yield self._add(done)
            return
        with shared_threads(n_others + 1) as threads:
            others = Processes(n_others, job, self.trajectory, pending, threads=threads)
            try:
                yield from self._measured_together(job, pending, others)
            finally:
                others.close()

    def _measured_here(self, job: Job, pending: Pending) -> Iterator[Done]:
        """What this process measures, for as long as there are steps left."""
        model = build_any(job.spec)
        while pending:
            try:
                step, keys = pending.popleft()
            except IndexError:  # another process took the last one
                return
            load_any(model, self.trajectory.weights(step))
            yield from job.measured(model, step, keys)

    def _measured_together(self, job: Job, pending: Pending, others: Processes) -> Iterator[int]:
        left = sum(len(keys) for _, keys in pending)
        for done in self._measured_here(job, pending):
            left -= 1
            yield self._add(done)
            for other in others.finished():
                left -= len(other.results)
                yield self._add(other)
        while left:
            for other in others.finished(wait=True):
                left -= len(other.results)
                yield self._add(other)

    def _add(self, done: Done) -> int:
        digest = self.trajectory.hash(done.step)
        for key, result in done.results.items():
            self.found[key].add_one(done.step, digest, result)
        return len(done.results)

    def _all_parts(self) -> dict[str, xr.Dataset]:
        """What was found, and what was known of other measures."""
        measured = {key: item.dataset() for key, item in self.found.items() if item.steps}
        return {**measured, **{key: v for key, v in self.kept.parts.items() if key not in measured}}

    def _keep(self) -> None:
        if self.cache is not None:
            self.cache.write_partial(self._all_parts())
        self._saved = time.monotonic()
