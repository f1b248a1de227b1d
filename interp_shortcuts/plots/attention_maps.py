"""Maps of the attention from "=" on a few examples: one map per head, two side by side.

Cells are markers rather than a heat map, so that a slider can move them without a redraw. Weights
are measured elsewhere; here rows, cells and hovers are labelled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from interp_shortcuts.plots.frame_canvas import FrameCanvas
from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.palette import ATTENTION_SCALE, INK, RULE, component_style
from interp_shortcuts.plots.panel import heads, rule_name

_TITLE, _ROW, _LABEL, _GAP, _BETWEEN = 44.0, 20.0, 20.0, 14.0, 0.03


@dataclass(frozen=True)
class ExampleTexts:
    """What is written in the cells, at the left of the rows, and in the hovers."""

    cells: list[list[str]]
    hovers: list[list[str]]
    rows: list[str]


def attention_height(data: xr.Dataset) -> float:
    """Pixels that the part takes."""
    return _TITLE + -(-len(heads(data)) // _columns(data)) * _block(data) + 8.0


def draw_attention(canvas: FrameCanvas, data: xr.Dataset, top: float) -> None:
    """Adds one map per head, from `top` downwards."""
    canvas.title(
        "Attention from '=' on single examples",
        "darker: more weight; at the left: true / shortcut label",
        top,
    )
    texts, columns = example_texts(data), _columns(data)
    width = (1 - _BETWEEN * (columns - 1)) / columns
    for index, (name, layer, head) in enumerate(heads(data)):
        row, column = divmod(index, columns)
        left, begin = column * (width + _BETWEEN), top + _TITLE + row * _block(data)
        colour = component_style(index).colour
        canvas.label(f"<span style='color:{colour}'>■</span> <b>{name}</b>", begin, x=left)
        axes = canvas.axes(
            (left, left + width),
            begin + _LABEL,
            begin + _LABEL + _ROW * len(texts.rows),
            x={
                "showticklabels": False,
                "showgrid": False,
                "ticks": "",
                "range": [-0.5, data.sizes["position"] - 0.5],
            },
            y={
                "gridcolor": RULE,
                "range": [len(texts.rows) - 0.5, -0.5],
                "tickmode": "array",
                "tickvals": list(range(len(texts.rows))),
                "ticktext": texts.rows,
                "showticklabels": column == 0,
                "ticks": "",
                "ticklabelstandoff": 3,
            },
        )
        trace = {
            "type": "scatter",
            "mode": "markers+text",
            "x": [place for row in texts.cells for place in range(len(row))],
            "y": [example for example, row in enumerate(texts.cells) for _ in row],
            "text": [cell for row in texts.cells for cell in row],
            "textposition": "middle center",
            "textfont": {"size": 11, "color": INK},
            "hovertext": [hover for row in texts.hovers for hover in row],
            "hovertemplate": (
                f"<b>{name}</b> · %{{hovertext}}"
                "<br>attention weight %{marker.color:.3f}<extra></extra>"
            ),
            "name": f"{name}, attention",
            "showlegend": False,
            **axes,
        }
        weights = data["attention_example"].sel(layer=layer, head=head)
        values = weights.transpose("step", "example", "position").values
        marker = {
            "symbol": "square",
            "size": _ROW + 2,
            "cmin": 0,
            "cmax": 1,
            "colorscale": [list(stop) for stop in ATTENTION_SCALE],
            "showscale": False,
            "line": {"width": 0},
            "opacity": 1,
        }
        canvas.add_marked(trace, marker, values.reshape(len(values), -1))


def example_texts(data: xr.Dataset) -> ExampleTexts:
    """Tokens in the cells (the largest in bold where the rule is about it), labels at the left."""
    about_max = rule_name(data).startswith("max")
    cells, hovers, rows = [], [], []
    for example, tokens in enumerate(data["example_tokens"].values):
        integers = tokens[:-1]
        bold = about_max & (integers == integers.max())
        cells.append(
            [f"<b>{t}</b>" if b else f"{t}" for t, b in zip(integers, bold, strict=True)] + ["="]
        )
        split, labels, in_words = _labels(data, example)
        rows.append(f"{split[:3]} {labels}".strip())
        sequence = " ".join([*map(str, integers), "="])
        where = [f"position {place}: {token}" for place, token in enumerate(integers)]
        hovers.append(
            [
                f"{plain(split)} example<br>{sequence}<br>{in_words}<br>{place}"
                for place in [*where, f"position {len(integers)}: '='"]
            ]
        )
    return ExampleTexts(cells, hovers, [plain(row) for row in rows])


def _labels(data: xr.Dataset, example: int) -> tuple[str, str, str]:
    split = ""
    if "example_split" in data.coords:
        split = str(data["example_split"].values[example])
    if "example_label" not in data or "example_shortcut" not in data:
        return split, "", "labels not recorded"
    label = int(np.asarray(data["example_label"].values)[example])
    shortcut = int(np.asarray(data["example_shortcut"].values)[example])
    return split, f"{label} / {shortcut}", f"true label {label}, shortcut label {shortcut}"


def _columns(data: xr.Dataset) -> int:
    return min(2, max(1, len(heads(data))))


def _block(data: xr.Dataset) -> float:
    return _LABEL + _ROW * data.sizes["example"] + _GAP
