"""What one measure has given so far, checkpoint by checkpoint.

Results arrive one at a time or many at once, in any order of measures; each keeps the hash of the
weights that it was taken from, so that a result is used only for the weights that it belongs to.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import xarray as xr

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.measures.along import along_steps
from interp_shortcuts.measures.base import Measure

HASH = "checkpoint_hash"
"""The coordinate along `step` with the first 16 hex digits of the hash of the weights."""
HASH_DIGITS = 16


class Measured:
    """The results of one measure: a growing dataset along `step`.

    Args:
        measure: The measure.
        known: Results of an earlier tracking, with the coordinate `checkpoint_hash`.
    """

    def __init__(self, measure: Measure, known: xr.Dataset | None = None) -> None:
        self.measure = measure
        self._blocks = [] if known is None else [known]
        self._singles: dict[int, tuple[str, xr.Dataset]] = {}

    @property
    def steps(self) -> set[int]:
        """The steps with a result."""
        in_blocks = {int(step) for block in self._blocks for step in block["step"].to_numpy()}
        return in_blocks | set(self._singles)

    def add(self, steps: Sequence[int], hashes: Mapping[int, str], results: xr.Dataset) -> None:
        """Adds results that have `step` as a dim."""
        digits = np.array([hashes[step][:HASH_DIGITS] for step in steps], dtype=np.str_)
        for array in results.data_vars.values():
            array.attrs.setdefault("measure", type(self.measure).__name__)
            array.attrs["measure_key"] = self.measure.key
        self._blocks.append(results.assign_coords({HASH: ("step", digits)}))

    def add_one(self, step: int, digest: str, result: xr.Dataset) -> None:
        """Adds the result of one observation, which has no dim `step`."""
        self._singles[step] = (digest, result)

    def dataset(self, steps: Sequence[int] | None = None) -> xr.Dataset:
        """The results at these steps, all of which must be there; None: at all steps there are."""
        if self._singles:
            own = sorted(self._singles)  # with several workers they come in any order
            joined = along_steps(
                [self._singles[step][1] for step in own], own, constant=self.measure.constant
            )
            hashes = {step: digest for step, (digest, _) in self._singles.items()}
            self.add(own, hashes, joined)
            self._singles = {}
        if len(self._blocks) > 1:
            self._blocks = [join_steps(self._blocks)]
        block = self._blocks[0]
        return block if steps is None else at_steps(block, steps)


def require_dataset(measure: Measure, result: object) -> xr.Dataset:
    """The result, if it is what a measure must return.

    Raises:
        MeasureError: If it is something else; names the class of the measure.
    """
    if not isinstance(result, xr.Dataset):
        raise MeasureError(
            f"the measure `{type(measure).__name__}` must return an `xarray.Dataset`; it returned "
            f"{type(result).__name__}."
        )
    return result


def join_steps(blocks: Sequence[xr.Dataset]) -> xr.Dataset:
    """Datasets of one measure below each other, sorted by step."""
    joined = xr.concat(
        blocks,
        dim="step",
        data_vars="minimal",
        coords="minimal",
        compat="override",
        join="exact",
        combine_attrs="override",
    )
    return joined.sortby("step")


def at_steps(block: xr.Dataset, steps: Collection[int]) -> xr.Dataset:
    """The results at these steps, in order."""
    return block.sel(step=sorted(steps))


def fresh(block: xr.Dataset, hashes: Mapping[int, str]) -> xr.Dataset | None:
    """The results whose weights are still those of the hashes; None when there are none."""
    if "step" not in block.dims or HASH not in block.coords:
        return None
    steps, digits = block["step"].to_numpy(), block[HASH].to_numpy()
    good = [
        int(step)
        for step, digit in zip(steps, digits, strict=True)
        if hashes.get(int(step), "")[:HASH_DIGITS] == digit
    ]
    return at_steps(block, good) if good else None
