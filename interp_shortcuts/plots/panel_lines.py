"""Lines, intervals and counts of panels, selected from a dataset at the steps they were measured.

A variable taken at some steps only (see `timelines.cadence`) gives lines with those steps. Which
variables a panel shows is chosen in the `*_panels` modules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.palette import component_style, component_styles, split_style
from interp_shortcuts.plots.panel import Line, Panel, Reference, components, heads
from interp_shortcuts.timelines.layout import measured_part

AT_FIRST_SIGHT = 8
"""With more heads and MLPs than this, the heads of a layer are shown jointly at first."""


def measured(variable: xr.DataArray, dim: str) -> list[str]:
    """Labels along `dim` that the variable was measured for, in order."""
    return [str(label) for label in measured_part(variable)[dim].values]


def pick(variable: xr.DataArray, dim: str, wanted: str | None) -> str | None:
    """The wanted label along `dim`, the first one for None; None if it was not measured."""
    choices = measured(variable, dim)
    if wanted is None:
        return choices[0] if choices else None
    return wanted if wanted in choices else None


def why_missing(data: xr.Dataset, name: str, measure: str = "") -> str | None:
    """Why a variable cannot be drawn; None if it can.

    Args:
        data: A timeline's dataset.
        name: The variable.
        measure: The measure that gives it, named in the reason when the variable is not there.
    """
    if name not in data:
        if measure:
            return f"the measure `{measure}` was not taken"
        return f"the variable `{name}` is not in this timeline"
    if bool(data[name].isnull().all()):
        meaning = plain(data[name].attrs.get("nan_means", "no reason given"))
        return f"`{name}` is undefined at every step ({meaning})"
    return None


def reason_undefined(data: xr.Dataset, name: str) -> str:
    """What NaN means in a variable, markup-safe."""
    return plain(data[name].attrs.get("nan_means", "no reason given"))


def curve(data: xr.Dataset, name: str, where: Mapping[str, object]) -> dict[str, Any]:
    """Steps, values and the ends of the 95% interval, as far as there is one."""
    part = measured_part(data[name]).sel(where)
    found: dict[str, Any] = {
        "steps": tuple(int(step) for step in part["step"].values),
        "values": part.values.astype(np.float64),
    }
    if f"{name}_interval" in data:
        interval = measured_part(data[f"{name}_interval"]).sel(where).sel(step=part["step"])
        for end in ("low", "high"):
            found[end] = interval.sel(bound=end).values.astype(np.float64)
    return found


def counts(
    data: xr.Dataset, name: str, where: Mapping[str, object], steps: Sequence[int]
) -> dict[str, Any]:
    """The number of examples or pairs behind each value, as far as it was recorded."""
    if name not in data:
        return {}
    number = measured_part(data[name])
    number = number.sel({dim: label for dim, label in where.items() if dim in number.dims})
    if "step" in number.dims:
        number = number.reindex(step=list(steps))
    return {"n": np.broadcast_to(number.values, (len(steps),)).astype(np.float64)}


def finish(
    panel: Panel, lines: Sequence[Line], nan_means: str, references: Sequence[Reference] = ()
) -> Panel:
    """The panel with the lines that have a value; the others become notes."""
    kept = tuple(line for line in lines if np.isfinite(line.values).any())
    absent = [line.label for line in lines if not np.isfinite(line.values).any()]
    if not kept:
        return replace(panel, missing=f"undefined at every step ({nan_means})")
    notes = (f"{', '.join(absent)}: undefined at every step ({nan_means})",) if absent else ()
    groups = {line.group for line in kept}
    shown = tuple(r for r in references if r.group is None or r.group in groups)
    return replace(panel, lines=kept, references=shown, notes=notes)


def by_split(data: xr.Dataset, name: str, splits: Sequence[str], panel: Panel) -> Panel:
    """One line per split that was measured."""
    known = measured(data[name], "split")
    lines = []
    for split in (split for split in splits if split in known):
        where: dict[str, object] = {"split": split}
        found = curve(data, name, where)
        number = counts(data, "n_examples", where, found["steps"])
        lines.append(Line(plain(split), plain(split), split_style(split), **found, **number))
    return finish(panel, lines, reason_undefined(data, name))


def by_head(
    data: xr.Dataset,
    name: str,
    selection: Mapping[str, object],
    panel: Panel,
    *,
    references: Sequence[Reference] = (),
    extra: Sequence[Line] = (),
) -> Panel:
    """One line per head."""
    lines = []
    for index, (head, layer, number) in enumerate(heads(data)):
        found = curve(data, name, {"layer": layer, "head": number, **selection})
        n = {}
        if "split" in selection:
            n = counts(data, "n_examples", {"split": selection["split"]}, found["steps"])
        lines.append(Line(head, head, component_style(index), **found, **n))
    return finish(panel, [*lines, *extra], reason_undefined(data, name), references)


def by_component(
    data: xr.Dataset,
    name: str,
    selection: Mapping[str, object],
    panel: Panel,
    *,
    n: str,
    references: Sequence[Reference] = (),
    beside: str = "",
) -> Panel:
    """One line per head, MLP and set of them.

    Args:
        data: A timeline's dataset.
        name: The variable.
        selection: Labels of its other dims.
        panel: What the lines are put in.
        n: The variable with the number of pairs or examples.
        references: Levels to read against.
        beside: A second variable to read each line against, drawn faint and without an interval.
    """
    styles, lines = component_styles(components(data)), []
    names = measured(data[name], "component")
    first = at_first_sight(names)
    for component in names:
        where = {"component": component, **selection}
        found = curve(data, name, where)
        number = counts(data, n, where, found["steps"])
        group, style, hidden = plain(component), styles[component], component not in first
        lines.append(Line(group, group, style, **found, **number, hidden=hidden))
        if beside and beside in data and component in measured(data[beside], "component"):
            found = curve(data, beside, where)
            line = Line(
                group,
                f"{group}, {beside.replace('_', ' ')}",
                style,
                steps=found["steps"],
                values=found["values"],
                quantity=beside.replace("_", " "),
                faint=True,
                hidden=hidden,
                **counts(data, f"{beside}_n", where, found["steps"]),
            )
            lines.append(line)
    return finish(panel, lines, reason_undefined(data, name), references)


def at_first_sight(names: Sequence[str]) -> set[str]:
    """The components shown before the reader clicks: not more than the eye can tell apart.

    Single components and all heads together, with what the user named; the heads of each layer
    jointly in place of single heads where there are many components.
    """
    layers = {name for name in names if re.fullmatch(r"L\d+\.heads", name)}
    single = {name for name in names if re.fullmatch(r"L\d+\.H\d+", name)}
    if layers and len(set(names) - layers - {"all heads", "all mlps"}) > AT_FIRST_SIGHT:
        return set(names) - single - {"all mlps"}
    return set(names) - layers - {"all mlps"}
