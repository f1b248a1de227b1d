"""The step axis that panels share: step 0 on a logarithmic axis, ticks, and the switch.

A logarithmic axis has no place for step 0. It is drawn at half of the first positive step, with
the tick label 0; on the linear axis it is drawn where it belongs. What is drawn over the steps is
left to others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

StepScale = Literal["linear", "log"]


@dataclass(frozen=True)
class StepAxis:
    """Where steps lie on a linear and on a logarithmic axis.

    Attributes:
        steps: The recorded steps, ascending.
    """

    steps: tuple[int, ...]

    @property
    def zero_on_log(self) -> float:
        """Where step 0 is drawn on the logarithmic axis."""
        positive = [step for step in self.steps if step > 0]
        return positive[0] / 2 if positive else 0.5

    def positions(
        self, steps: Sequence[int | float | None], scale: StepScale
    ) -> list[int | float | None]:
        """The x values of `steps` (None stays None: it separates pieces of an outline)."""
        zero = self.zero_on_log
        if scale == "linear":
            return list(steps)
        return [step if step is None or step > 0 else zero for step in steps]

    def layout(self, scale: StepScale) -> dict[str, Any]:
        """Type, range and ticks of the axis."""
        last = max(*self.steps, 1)
        if scale == "linear":
            first = min(self.steps)
            pad = 0.012 * max(last - first, 1)
            return {
                "type": "linear",
                "range": [first - pad, last + pad],
                "tickmode": "auto",
                "nticks": 8,
                "tickvals": None,
                "ticktext": None,
            }
        low, high = (
            np.log10(self.zero_on_log if 0 in self.steps else min(self.steps)),
            np.log10(last),
        )
        pad = 0.012 * max(high - low, 0.1)
        values, labels = self._log_ticks()
        return {
            "type": "log",
            "range": [float(low - pad), float(high + pad)],
            "tickmode": "array",
            "tickvals": values,
            "ticktext": labels,
        }

    def _log_ticks(self) -> tuple[list[int | float], list[str]]:
        positive = [step for step in self.steps if step > 0] or [1]
        low, high = positive[0], positive[-1]
        decades = np.log10(high / low)
        multiples = (1, 2, 5) if decades < 2.2 else (1, 3) if decades < 3.5 else (1,)
        values: list[int | float] = []
        labels: list[str] = []
        if 0 in self.steps:
            values.append(self.zero_on_log)
            labels.append("0")
        for exponent in range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1):
            for multiple in multiples:
                value = multiple * 10**exponent
                if low <= value <= high:
                    values.append(value)
                    labels.append(f"{value:,}" if value >= 1 else f"{value:g}")
        return values, labels
