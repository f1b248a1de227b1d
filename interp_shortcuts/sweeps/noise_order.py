"""Which labels are fitted first under label noise, the clean or the noisy ones, over seeds.

A network that has fitted no noisy label still gives some of them: a wrong label is uniform over the
other classes, so that whoever gives the true class to a fraction p of the noisy examples gives
their noisy label to (1 - p) / (C - 1) of them, in expectation. **Ours**: noisy labels count as
memorised only as far as their accuracy is above that, here called the blind accuracy. A mean over
seeds is `mean_over_seeds`, a step that is held `reached`. Loads no torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.measures.attribution.stability import mean_over_seeds
from interp_shortcuts.measures.intervals import proportion_interval
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.runs.run import Run
from interp_shortcuts.sweeps.settings import groups, setting_label
from interp_shortcuts.tasks.any_config import NOISY_CONFIGS
from interp_shortcuts.timelines.reached import held_from

FITTED = 0.9
"""The accuracy from which on a group of labels counts as fitted."""
ACCURACIES = ("clean", "noisy", "noisy_true", "test")
COURSES = (*ACCURACIES, "blind", "memorised", "noisy_ahead")
EVENTS = ("clean_learned", "noisy_learned", "noisy_memorised", "clean_fitted", "noisy_fitted")
_COURSE_COLUMNS = ("setting", "step", "course", "mean", "low", "high", "n")


def blind_accuracy(
    noisy_true: Float[np.ndarray, "..."], *, n_classes: int
) -> Float[np.ndarray, "..."]:
    """The expected accuracy on noisy labels of a network that has fitted none of them.

    Args:
        noisy_true: Its accuracy on the true labels of the same examples, a fraction p.
        n_classes: Number C of classes that occur as labels.

    Returns:
        (1 - p) / (C - 1), exact for any answers that do not depend on the noisy label.
    """
    return (1 - noisy_true) / (n_classes - 1)


def noise_curves(runs: Iterable[Run]) -> pd.DataFrame:
    """The accuracies of runs at each evaluation, the noisy ones beside the blind accuracy.

    Args:
        runs: Runs of a task with wrong training labels.

    Returns:
        One row a run and step: `setting` (the fields in which the runs differ, apart from the
        seed, and always the noise), `seed`, `step`; the accuracies `clean`, `noisy` (on the
        observed labels), `noisy_true` (on the true labels of the same examples) and `test`;
        `blind`, (1 - noisy_true) / (C - 1); `memorised`, noisy - blind; `noisy_ahead`, whether
        noisy is above clean; `n_clean`, `n_noisy` and `chance`, 1 / C. NaN for a group without
        examples.

    Raises:
        ConfigError: If there is no run, or one of another task.
        StorageError: If the curves of a run are damaged.
    """
    known = list(runs)
    if not known:
        raise ConfigError("`runs` must hold at least one run; got none.")
    settings = _settings([run.config for run in known])
    labelled = list(zip(known, settings, strict=True))
    labelled.sort(key=lambda pair: (_order(pair[1]), pair[0].config.seed))
    tables = [_curves(run, setting_label(setting)) for run, setting in labelled]
    return pd.concat(tables, ignore_index=True)


def noise_course(curves: pd.DataFrame) -> pd.DataFrame:
    """The accuracies over seeds, at every step.

    Args:
        curves: What `noise_curves` gives.

    Returns:
        One row a setting, step and `course` (those in `COURSES`): `mean`, its 95% t interval
        `low` to `high` over seeds, and `n` (seeds). Of `noisy_ahead`, the fraction of seeds with
        its exact interval.
    """
    rows = []
    for (setting, step), at in groups(curves, ["setting", "step"]):
        for course in COURSES:
            values = at[course].to_numpy(dtype=np.float64)
            found = _share(values) if course == "noisy_ahead" else _mean(values)
            rows.append({"setting": setting, "step": step, "course": course, **found})
    return pd.DataFrame(rows, columns=list(_COURSE_COLUMNS))


def first_steps(course: pd.DataFrame, n_steps: int) -> pd.DataFrame:
    """The means at the first steps, wide, in percent with their intervals as text.

    Args:
        course: What `noise_course` gives.
        n_steps: How many steps of each setting.

    Returns:
        One row a setting and step, a column for each of `COURSES`.
    """
    rows = []
    for (setting,), own in groups(course, ["setting"]):
        for (step,), at in list(groups(own, ["step"]))[:n_steps]:
            texts = {row["course"]: _percent(row) for row in at.to_dict("records")}
            rows.append({"setting": setting, "step": step, **texts})
    return pd.DataFrame(rows, columns=["setting", "step", *COURSES])


def noise_events(curves: pd.DataFrame) -> pd.DataFrame:
    """When each group of labels is learned and fitted, by run.

    Args:
        curves: What `noise_curves` gives.

    Returns:
        One row a run: `setting`, `seed` and the steps of `EVENTS`, empty where there is none.
        `clean_learned` and `noisy_learned`: the first step from which on, to the end, the exact
        95% interval of the accuracy is above chance. `noisy_memorised`: above the blind accuracy.
        `clean_fitted` and `noisy_fitted`: the accuracy is at least 0.9. `last` is the last step.
    """
    rows = []
    for (setting, seed), run in groups(curves, ["setting", "seed"]):
        steps = [int(step) for step in run["step"]]
        found = {
            name: held_from(steps, there.astype(np.float64), 1.0).step
            for name, there in _there(run).items()
        }
        rows.append({"setting": setting, "seed": seed, **found, "last": steps[-1]})
    table = pd.DataFrame(rows, columns=["setting", "seed", *EVENTS, "last"])
    return table.astype(dict.fromkeys(EVENTS, "Int64"))


def event_summary(events: pd.DataFrame) -> pd.DataFrame:
    """The events over seeds: `median`, `earliest` and `latest` step, and in how many of `n` seeds.

    Args:
        events: What `noise_events` gives.
    """
    rows = []
    for (setting,), runs in groups(events, ["setting"]):
        for event in EVENTS:
            steps = runs[event].dropna().to_numpy(dtype=np.float64)
            spread = (np.median(steps), steps.min(), steps.max()) if steps.size else [np.nan] * 3
            seen = dict(zip(("median", "earliest", "latest"), map(float, spread), strict=True))
            rows.append(
                {"setting": setting, "event": event, **seen, "seeds": steps.size, "n": len(runs)}
            )
    return pd.DataFrame(rows)


def _settings(configs: list[RunConfig]) -> list[dict[str, Any]]:
    """For each run the fields in which the runs differ, by flat name; always the noise."""
    fields: dict[str, None] = {"task.noise": None}
    for config in configs:
        if not isinstance(config.task, NOISY_CONFIGS):
            raise ConfigError(
                "`runs` must be of a task with wrong training labels; got one of "
                f"{config.task.label}."
            )
        fields |= dict.fromkeys(configs[0].differences(config))
    fields.pop("seed", None)
    return [
        {name.rpartition(".")[2]: _value(config, name) for name in fields} for config in configs
    ]


def _order(setting: Mapping[str, Any]) -> tuple[tuple[bool, Any], ...]:
    """What settings are sorted by: numbers by size, before texts."""
    return tuple(
        (False, value) if isinstance(value, int | float) else (True, str(value))
        for value in setting.values()
    )


def _value(config: RunConfig, name: str) -> Any:
    part, _, field = name.partition(".")
    found = getattr(getattr(config, part), field.partition(".")[0], None)
    return str(found) if isinstance(found, tuple) else found


def _curves(run: Run, setting: str) -> pd.DataFrame:
    long = run.curves()
    steps = pd.Index(sorted(long["step"].unique()), name="step")
    wide = long.pivot(index="step", columns="split", values="accuracy").reindex(steps)
    task = run.config.task
    n_classes = int(getattr(task, "n_answers", run.config.spec.n_classes))
    table = pd.DataFrame({"setting": setting, "seed": run.config.seed, "step": steps})
    for name in ACCURACIES:
        table[name] = wide[name].to_numpy(dtype=np.float64)
    table["blind"] = blind_accuracy(table["noisy_true"].to_numpy(), n_classes=n_classes)
    table["memorised"] = table["noisy"] - table["blind"]
    table["noisy_ahead"] = (table["noisy"] > table["clean"]).where(table["noisy"].notna())
    counts: Mapping[Any, Any] = long.groupby("split")["n"].first().to_dict()
    return table.assign(
        n_clean=int(counts["clean"]), n_noisy=int(counts["noisy"]), chance=1 / n_classes
    )


def _there(run: pd.DataFrame) -> dict[str, Bool[np.ndarray, " step"]]:
    """Whether each event holds, step by step."""
    chance = run["chance"].to_numpy()
    return {
        "clean_learned": _lowest(run, "clean") > chance,
        "noisy_learned": _lowest(run, "noisy") > chance,
        "noisy_memorised": _lowest(run, "noisy") > run["blind"].to_numpy(),
        "clean_fitted": run["clean"].to_numpy() >= FITTED,
        "noisy_fitted": run["noisy"].to_numpy() >= FITTED,
    }


def _lowest(run: pd.DataFrame, name: str) -> np.ndarray:
    """The lower end of the exact interval of an accuracy over its examples."""
    n = run[f"n_{name}"].to_numpy()
    return proportion_interval(np.rint(run[name].to_numpy() * n), n)[:, 0]


def _percent(row: Mapping[Any, Any]) -> str:
    mean, low, high = (100 * row[name] for name in ("mean", "low", "high"))
    return f"{mean:.1f} ({low:.1f} to {high:.1f})" if row["n"] else "–"


def _mean(values: np.ndarray) -> dict[str, Any]:
    found = mean_over_seeds(values, n_resamples=1)
    return {"mean": found.mean, "low": found.low, "high": found.high, "n": found.n}


def _share(values: np.ndarray) -> dict[str, Any]:
    known = values[np.isfinite(values)]
    low, high = proportion_interval(np.asarray(known.sum()), np.asarray(known.size))
    mean = float(known.mean()) if known.size else float("nan")
    return {"mean": mean, "low": float(low), "high": float(high), "n": int(known.size)}
