"""`CircuitTracker`: takes measures along a trajectory, or inside a user's own training loop.

What is still to be measured is decided in `tracking`, how results are kept in `cache`, how often a
measure is taken in `cadence`; what the measures compute is theirs.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence

import xarray as xr
from torch import nn

from interp_shortcuts.canonical import short_hash
from interp_shortcuts.errors import MeasureError
from interp_shortcuts.measures.along import located
from interp_shortcuts.measures.base import Measure
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.measures.registry import default_measures
from interp_shortcuts.models.any_model import own_model, weights_of_any
from interp_shortcuts.models.any_spec import AnySpec
from interp_shortcuts.runs.checkpoint import content_hash
from interp_shortcuts.runs.trajectory import Trajectory
from interp_shortcuts.tasks.base import Task
from interp_shortcuts.timelines.asked import checked_measures, checked_source
from interp_shortcuts.timelines.cache import Kept, MeasureCache
from interp_shortcuts.timelines.cadence import checked_cadence, marked
from interp_shortcuts.timelines.layout import put_together
from interp_shortcuts.timelines.measured import Measured, require_dataset
from interp_shortcuts.timelines.provenance import timeline_attrs
from interp_shortcuts.timelines.timeline import Timeline
from interp_shortcuts.timelines.tracking import Tracking


class CircuitTracker:
    """Measures a run at each of its checkpoints.

    Three ways in give the same numbers: a run folder
    (`CircuitTracker(Trajectory.open("runs/demo")).track()`), your own checkpoints
    (`Trajectory.from_checkpoints`), and your own training loop, with nothing stored:

        tracker = CircuitTracker(task)
        for step in range(n_steps):
            ...
            tracker.observe(step, model)
        tracker.timeline

    A run folder keeps what was measured. Tracking again measures only what is new (measures, steps,
    changed weights), and a killed tracking goes on from what was last saved.

    Measures that cost much can be taken at every k-th checkpoint, and always at the first and the
    last: `CircuitTracker(trajectory, cadence={"cross_split_patching": 5})`. The others keep every
    checkpoint.

    Args:
        source: A trajectory, or a task for `observe`.
        measures: What to measure, one measure or several; None means
            `default_measures(task, spec)`; where a task is given without a spec, the first observed
            model says which those are.
        cadence: Every how many checkpoints (or observations) a measure is taken, by its `name`;
            1 for those left out, or one number for all. Written into the variables' attribute
            `cadence`. Changing it measures only what is missing.
        spec: With a task: the spec that observed models must have (a `ModelSpec` or a
            `TwoLayerSpec`); None means that of the first.
        cache: Read and write the measurements in the run folder; without one, nothing is kept.
        progress: Show one bar over checkpoints and measures if it takes more than two seconds.
        workers: How many processes measure the checkpoints of a trajectory, this one included. They
            share torch's threads, and the numbers are to the bit those of one process with as
            many threads as each has. The others start in some seconds, so that it pays from
            dozens of checkpoints on. With `workers` above 1 a script must keep what it does under
            `if __name__ == "__main__":`.

    Raises:
        MeasureError: If `source` is neither a trajectory nor a task, if `measures` is empty, names
            one twice, or holds something else, if one does not fit the task or the model, if
            `cadence` is below 1 or names something else, or if `workers` is below 1.
    """

    def __init__(
        self,
        source: Trajectory | Task,
        *,
        measures: Measure | Sequence[Measure] | None = None,
        cadence: Mapping[str, int] | int = 1,
        spec: AnySpec | None = None,
        cache: bool = True,
        progress: bool = True,
        workers: int = 1,
    ) -> None:
        self._source = checked_source(source)
        trajectory = self.trajectory
        if trajectory is not None and spec not in (None, trajectory.spec):
            raise MeasureError(
                "`spec` must be left out with a trajectory, or be the trajectory's own: got "
                f"{spec}, and the trajectory has {trajectory.spec}."
            )
        self.spec = spec if trajectory is None else trajectory.spec
        self._by_default, self._asked_cadence = measures is None, cadence
        self._take(default_measures(self.task, self.spec) if measures is None else measures)
        self.cache = cache
        self.progress = progress
        if workers < 1:
            raise MeasureError(f"`workers` (={workers}) must be at least 1.")
        self.workers = workers
        self._hashes: dict[int, str] = {}
        self._timeline: Timeline | None = None

    def _take(self, measures: object) -> None:
        """Checks the measures and their cadences, and makes room for what they give."""
        self.measures = checked_measures(measures, self._source, spec=self.spec)
        names = [measure.name for measure in self.measures]
        self.cadence = checked_cadence(self._asked_cadence, names)
        self._observed = {measure.key: Measured(measure) for measure in self.measures}

    @property
    def trajectory(self) -> Trajectory | None:
        """The checkpoints; None for a tracker that observes."""
        return self._source if isinstance(self._source, Trajectory) else None

    @property
    def task(self) -> Task:
        """What the models are asked."""
        return self._source.task if isinstance(self._source, Trajectory) else self._source

    @property
    def timeline(self) -> Timeline:
        """What was tracked, or observed so far.

        Raises:
            MeasureError: If nothing was yet.
        """
        if self._timeline is None and self._hashes:
            parts = [
                marked(found.dataset(), self.cadence[found.measure.name])
                for found in self._observed.values()
            ]
            self._timeline = self._as_timeline(parts, run_id=self._observed_id())
        if self._timeline is None:
            todo = "observe(step, model)" if self.trajectory is None else "track()"
            raise MeasureError(f"There is no timeline yet; call `{todo}` first.")
        return self._timeline

    def track(self) -> Timeline:
        """Every measure at every checkpoint of the trajectory that its cadence asks for.

        In a run folder the result is also written to `timeline.nc`, beside other measures that were
        tracked there before.

        Raises:
            MeasureError: If the source is a task, or a measure fails; names measure and step. What
                was measured until then is kept.
            StorageError: If a checkpoint or the stored timeline is damaged.
        """
        trajectory = self.trajectory
        if trajectory is None:
            raise MeasureError(
                "`track()` needs a trajectory; this tracker was given a task. Call "
                "`observe(step, model)`, or give `Trajectory.open(path)`."
            )
        attrs = self._attrs(run_id=trajectory.run_id)
        cache = None
        if self.cache and trajectory.path is not None:
            cache = MeasureCache(trajectory.path, attrs)
        kept = Kept() if cache is None else cache.read()
        tracking = Tracking(
            trajectory,
            self.measures,
            self.cadence,
            cache,
            kept,
            progress=self.progress,
            workers=self.workers,
        )
        if not tracking.missing() and kept.created:
            attrs["created"] = kept.created
        tracking.run()
        self._timeline = Timeline(put_together(tracking.results()).assign_attrs(attrs))
        tracking.store()
        return self._timeline

    def observe(self, step: int, model: nn.Module, *, last: bool = False) -> None:
        """Measures a model of your own training loop, which is left as it is.

        A measure with a cadence of k is taken at the first observation and at every k-th after it.

        Args:
            step: The training step; larger than that of the observation before.
            model: A `HookedTransformer` or a `TwoLayerNet`, in whatever mode; of a compiled one the
                eager module is used.
            last: Take every measure, whatever its cadence; say so at the last observation, which
                the tracker cannot know, and the measures end where the timeline ends.

        Raises:
            MeasureError: If the step is out of order, the model is another one than before, or a
                measure fails; then nothing of this step is kept.
        """
        if self.trajectory is not None:
            raise MeasureError(
                "`observe` needs a tracker that was given a task; this one was given a trajectory, "
                "which `track()` measures."
            )
        step = operator.index(step)
        self._check_step(step)
        own = own_model(model)
        observation = Observation(own, self.task, step)
        spec = observation.any_spec
        if self.spec is None:
            self._settle_for(spec)
        elif spec != self.spec:
            raise MeasureError(
                f"The model at step {step} must have the spec {self.spec}; it has {spec}. Use one "
                "tracker for each model."
            )
        results = {}
        for measure in self.measures:
            if last or len(self._hashes) % self.cadence[measure.name] == 0:
                with located(measure.name, step):
                    results[measure.key] = require_dataset(measure, measure.measure(observation))
        digest = content_hash(weights_of_any(own))
        for key, result in results.items():
            self._observed[key].add_one(step, digest, result)
        self.spec = spec
        self._hashes[step] = digest
        self._timeline = None

    def __repr__(self) -> str:
        names = ", ".join(measure.name for measure in self.measures)
        what = self.trajectory if self.trajectory is not None else f"task {self.task.name}"
        return f"CircuitTracker({what}; measures: {names})"

    def _settle_for(self, spec: AnySpec) -> None:
        """Makes sure that the measures fit the first model; default ones follow its kind."""
        if self._by_default and not all(one.fits(self.task, spec) for one in self.measures):
            self._take(default_measures(self.task, spec))
        for measure in self.measures:
            measure.require_kind(self.task, spec)

    def _check_step(self, step: int) -> None:
        if step < 0:
            raise MeasureError(f"`step` (={step}) must be 0 or more.")
        last = max(self._hashes, default=None)
        if last is None:
            return
        if step == last:
            raise MeasureError(f"`step` (={step}) was observed already; observe each step once.")
        if step < last:
            raise MeasureError(
                f"`step` (={step}) must be larger than that of the last observation (={last})."
            )

    def _observed_id(self) -> str:
        """The same as of a trajectory made of these weights."""
        spec_hash = "" if self.spec is None else self.spec.hash
        return short_hash([spec_hash, [[step, digest] for step, digest in self._hashes.items()]])

    def _attrs(self, *, run_id: str) -> dict[str, str | int | float]:
        if self.spec is None:
            raise MeasureError("There is no spec before the first observation.")
        trajectory = self.trajectory
        path = None if trajectory is None else trajectory.path
        source = "observed" if trajectory is None else "checkpoints" if path is None else "run"
        return timeline_attrs(
            task=self.task,
            spec=self.spec,
            run_id=run_id,
            source=source,
            config=None if trajectory is None else trajectory.config,
            path=path,
        )

    def _as_timeline(self, parts: Sequence[xr.Dataset], *, run_id: str) -> Timeline:
        return Timeline(put_together(parts).assign_attrs(self._attrs(run_id=run_id)))
