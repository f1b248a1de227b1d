"""The tables behind `hidden_cells`: a row a run, and means and counts over the seeds of a cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from interp_shortcuts.canonical import canonical_json
from interp_shortcuts.measures.attribution.stability import mean_over_seeds
from interp_shortcuts.measures.intervals import proportion_interval
from interp_shortcuts.sweeps.settings import setting_label
from interp_shortcuts.timelines.hidden_progress import (
    ACTINGS,
    HiddenProgress,
    group_curves,
    network_curve,
)
from interp_shortcuts.timelines.hidden_tables import spectra_table
from interp_shortcuts.timelines.timeline import Timeline

WIDTH = "model.width"
"""The setting along which test accuracy is drawn as a double descent."""
ONE_CELL = "all runs"
NETWORKS = (("full", "trained"), *(("G", acting) for acting in ACTINGS))
"""The networks whose events are counted."""
COURSE_GROUPS = ("test", "clean", "noisy")
_INTERVAL = ("mean", "sd", "low", "high", "n", "n_undefined")

FINALS = ("cell", "network", "acting", "group", *_INTERVAL)
COURSE = ("cell", "network", "acting", "group", "step", *_INTERVAL)
DESCENT = ("line", "width", "network", "acting", "group", *_INTERVAL)
EVENTS = ("cell", "network", "acting", "count", "n", "low", "high", "median", "earliest", "latest")
FIRST = ("cell", "level", "noisy", "clean", "together", "unknown", "n", "low", "high")


def cell_label(own: Mapping[str, Any], differing: Sequence[str]) -> str:
    """A cell in words, its settings by the last part of their names where that is unique."""
    if not differing:
        return ONE_CELL
    short = [name.rsplit(".", 1)[-1] for name in differing]
    names = [s if short.count(s) == 1 else n for s, n in zip(short, differing, strict=True)]
    values = [_scalar(own.get(name)) for name in differing]
    return setting_label(dict(zip(names, values, strict=True)))


def _scalar(value: Any) -> Any:
    return canonical_json(value) if isinstance(value, list | dict) else value


def run_table(
    timelines: Mapping[str, Timeline],
    progress: Mapping[str, HiddenProgress],
    excluded: Mapping[str, str],
    own: Mapping[str, Mapping[str, Any]],
    labels: Mapping[str, str],
    differing: Sequence[str],
) -> pd.DataFrame:
    rows = []
    for name in dict.fromkeys([*timelines, *excluded]):
        line, found = timelines.get(name), progress.get(name)
        seed = -1 if line is None else int(line.data.attrs.get("seed", -1))
        rows.append(
            {
                "run": name,
                "cell": labels.get(name, ""),
                "seed": seed if seed >= 0 else None,
                **{field: _scalar(own.get(name, {}).get(field)) for field in differing},
                **_of_run(found),
                "concentration": float("nan") if line is None else _concentration(line),
                "last_step": None if line is None or not line.steps else line.steps[-1],
                "reason": excluded.get(name, "" if found is None else found.reason),
            }
        )
    whole = ("seed", "full_step", "G_step", "G_quadratic_step", "last_step")
    return pd.DataFrame(rows).astype(dict.fromkeys(whole, "Int64"))


def _of_run(found: HiddenProgress | None) -> dict[str, Any]:
    accuracies = {
        "clean": ("full", "clean", "trained"),
        "noisy": ("full", "noisy", "trained"),
        "test": ("full", "test", "trained"),
        "test_G": ("G", "test", "trained"),
        "test_G_quadratic": ("G", "test", "quadratic"),
        "noisy_R": ("R", "noisy", "trained"),
    }
    row: dict[str, Any] = {
        name: float("nan") if found is None else found.final(*where)
        for name, where in accuracies.items()
    }
    hidden = {} if found is None else found.hidden
    events = {"full_step": None if found is None else found.full}
    events |= {"G_step": hidden.get("trained"), "G_quadratic_step": hidden.get("quadratic")}
    row |= {name: None if event is None else event.step for name, event in events.items()}
    first = None if found is None else found.fitted_first().which
    return {**row, "fitted_first": first or ""}


def _concentration(line: Timeline) -> float:
    """Mean concentration of w over the neurons at the last step; NaN if it was not measured."""
    for row in spectra_table(line.data).to_dict("records"):
        if (row["quantity"], row["of"]) == ("concentration", "w"):
            return float(row["mean"])
    return float("nan")


def finals_of_cells(
    members: Mapping[str, Sequence[str]], progress: Mapping[str, HiddenProgress]
) -> pd.DataFrame:
    rows = []
    for cell, names in members.items():
        points: dict[tuple[str, ...], list[float]] = {}
        for name in names:
            for row in progress[name].finals.to_dict("records"):
                key = (row["network"], row["acting"], row["group"])
                points.setdefault(key, []).append(float(row["accuracy"]))
        rows += [
            {"cell": cell, **dict(zip(FINALS[1:4], key, strict=True)), **_mean(values)}
            for key, values in points.items()
        ]
    return pd.DataFrame(rows, columns=list(FINALS))


def events_of_cells(
    members: Mapping[str, Sequence[str]], progress: Mapping[str, HiddenProgress]
) -> pd.DataFrame:
    rows = []
    for cell, names in members.items():
        for network, acting in NETWORKS:
            found = [progress[name] for name in names]
            events = [one.full if network == "full" else one.hidden.get(acting) for one in found]
            asked = [event for event in events if event is not None]
            steps = [event.step for event in asked if event.step is not None]
            middle = {"median": np.nan, "earliest": np.nan, "latest": np.nan}
            if steps:
                middle = {
                    "median": float(np.median(steps)),
                    "earliest": float(min(steps)),
                    "latest": float(max(steps)),
                }
            rows.append(
                {
                    "cell": cell,
                    "network": network,
                    "acting": acting,
                    **_count(len(steps), len(asked)),
                    **middle,
                }
            )
    return pd.DataFrame(rows, columns=list(EVENTS))


def fitted_first_of_cells(
    members: Mapping[str, Sequence[str]], progress: Mapping[str, HiddenProgress]
) -> pd.DataFrame:
    """Of the runs of which it can be said, in how many noisy labels are fitted first."""
    rows = []
    for cell, names in members.items():
        levels = dict.fromkeys(level for name in names for level in progress[name].levels)
        for level in levels:
            found = [progress[name].fitted_first(level).which or "unknown" for name in names]
            counts = {key: found.count(key) for key in ("noisy", "clean", "together", "unknown")}
            known = len(found) - counts["unknown"]
            of_noisy = _count(counts["noisy"], known)
            ends = {key: of_noisy[key] for key in ("n", "low", "high")}
            rows.append({"cell": cell, "level": level, **counts, **ends})
    return pd.DataFrame(rows, columns=list(FIRST))


def course_of_cells(
    members: Mapping[str, Sequence[str]], timelines: Mapping[str, Timeline]
) -> pd.DataFrame:
    rows = []
    for cell, names in members.items():
        points: dict[tuple[str, str, str], dict[int, list[float]]] = {}
        for name in names:
            for key, steps, values in _curves(timelines[name]):
                own = points.setdefault(key, {})
                for step, value in zip(steps, values.tolist(), strict=True):
                    own.setdefault(step, []).append(value)
        for key, own in points.items():
            place = dict(zip(COURSE[1:4], key, strict=True))
            rows += [
                {"cell": cell, **place, "step": step, **_mean(own[step])} for step in sorted(own)
            ]
    return pd.DataFrame(rows, columns=list(COURSE))


def _curves(
    line: Timeline,
) -> Iterator[tuple[tuple[str, str, str], tuple[int, ...], np.ndarray]]:
    """The network itself, network G and network R, on the groups that are drawn."""
    steps, groups = group_curves(line.data)
    for group in COURSE_GROUPS:
        if group in groups:
            yield ("full", "trained", group), steps, groups[group]
        for network in ("G", "R"):
            for acting in ACTINGS:
                own, curve = network_curve(line.data, network, acting, group)
                if own:
                    yield (network, acting, group), own, curve


def descent_by_width(
    finals: pd.DataFrame,
    members: Mapping[str, Sequence[str]],
    own: Mapping[str, Mapping[str, Any]],
    differing: Sequence[str],
) -> pd.DataFrame:
    """The final accuracies by width, a line for each setting of everything else."""
    others = [name for name in differing if name != WIDTH]
    first = {cell: own[names[0]] for cell, names in members.items()}
    rows = [
        {
            "line": cell_label(first[row["cell"]], others),
            "width": first[row["cell"]].get(WIDTH),
            **{name: row[name] for name in DESCENT[2:]},
        }
        for row in finals.to_dict("records")
        if first[row["cell"]].get(WIDTH) is not None
    ]
    rows.sort(key=lambda row: row["width"])
    return pd.DataFrame(rows, columns=list(DESCENT))


def _mean(values: Sequence[float]) -> dict[str, Any]:
    found = mean_over_seeds(values, n_resamples=1)
    return {name: getattr(found, name) for name in _INTERVAL}


def _count(count: int, n: int) -> dict[str, Any]:
    low, high = proportion_interval(np.array(count), np.array(n)).tolist()
    return {"count": count, "n": n, "low": low, "high": high}
