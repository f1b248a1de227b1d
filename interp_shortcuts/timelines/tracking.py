"""One pass along a trajectory: what is missing, in which order it is measured, when it is saved.

Measures of weights are taken over many checkpoints at once, the others share one forward pass at
each. What is kept where is left to `cache`, the result to `tracker`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

import xarray as xr
from tqdm.auto import tqdm

from interp_shortcuts.measures.along import CHUNK, SECONDS_BEFORE_BAR, along_steps, located
from interp_shortcuts.measures.base import Measure, WeightsMeasure
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.models.build import build, load_weights
from interp_shortcuts.runs.trajectory import Trajectory
from interp_shortcuts.timelines.cache import Kept, MeasureCache
from interp_shortcuts.timelines.cadence import due, marked
from interp_shortcuts.timelines.measured import Measured, require_dataset

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
        model = build(self.trajectory.spec)
        for step in steps:
            load_weights(model, self.trajectory.weights(step))
            observation = Observation(model, self.task, step)
            digest = self.trajectory.hash(step)
            for key, wanted in lacking.items():
                if step in wanted:
                    measure = self.found[key].measure
                    with located(measure.name, step):
                        result = require_dataset(measure, measure.measure(observation))
                    self.found[key].add_one(step, digest, result)
                    yield 1

    def _all_parts(self) -> dict[str, xr.Dataset]:
        """What was found, and what was known of other measures."""
        measured = {key: item.dataset() for key, item in self.found.items() if item.steps}
        return {**measured, **{key: v for key, v in self.kept.parts.items() if key not in measured}}

    def _keep(self) -> None:
        if self.cache is not None:
            self.cache.write_partial(self._all_parts())
        self._saved = time.monotonic()
