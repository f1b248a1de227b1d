"""How often a measure is taken along a trajectory: at every checkpoint, or at every k-th.

A thinned measure is taken at the first, every k-th and the last checkpoint. Its variables say so in
the attribute `cadence`; in a timeline they are padded at the other steps (see `layout`), which
`Timeline.array` leaves out again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import xarray as xr

from interp_shortcuts.errors import MeasureError

CADENCE = "cadence"
"""The attribute of variables that were taken at every k-th checkpoint only."""
ONLY_THE_ENDS = 1_000_000
"""A cadence for which no run has the checkpoints: the first and the last alone."""


def checked_cadence(cadence: Mapping[str, int] | int, names: Sequence[str]) -> dict[str, int]:
    """k for each measure.

    Args:
        cadence: By the measure's name, with 1 for those that are left out; or one number for all.
        names: The names of the measures.

    Raises:
        MeasureError: If a number is below 1, or a name is none of a measure.
    """
    given = dict.fromkeys(names, cadence) if isinstance(cadence, int) else dict(cadence)
    for name, every in given.items():
        if name not in names:
            raise MeasureError(
                f"`cadence` names {name!r}, which is not measured; the measures are "
                f"{', '.join(dict.fromkeys(names))}."
            )
        if every < 1:
            raise MeasureError(f"`cadence` of {name!r} (={every}) must be 1 or more.")
    return dict.fromkeys(names, 1) | given


def due(steps: Sequence[int], every: int) -> tuple[int, ...]:
    """The first, every `every`-th and the last of the steps."""
    return tuple(
        step for index, step in enumerate(steps) if index % every == 0 or index == len(steps) - 1
    )


def marked(part: xr.Dataset, every: int) -> xr.Dataset:
    """What one measure gave, saying how often it was taken."""
    marks = {}
    for name, array in part.data_vars.items():
        attrs = {key: value for key, value in array.attrs.items() if key != CADENCE}
        if every > 1 and "step" in array.dims:
            attrs[CADENCE] = every
        marks[name] = array.copy(deep=False)
        marks[name].attrs = attrs
    return part.assign(marks)


def cadence_of(part: xr.Dataset) -> int:
    """How often the measure that gave this was taken, as it says."""
    return max((int(array.attrs.get(CADENCE, 1)) for array in part.data_vars.values()), default=1)
