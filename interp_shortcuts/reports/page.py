"""Templates, figures and scripts of the pages: everything that a user typed is escaped here.

What the pages say is left to `facts.py` and `index.py`.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

_TEMPLATES = Path(__file__).parent / "templates"


def shown(value: Any) -> str:
    """A number as tables show it; one and zero are kept for exactly one and zero."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    return _decimal(value).replace("-", "−", 1) if value < 0 else _decimal(value)


def _decimal(value: float) -> str:
    if abs(value) >= 1000 or 0 < abs(value) < 1e-4:
        return f"{value:.3g}"
    for digits in (3, 4, 5, 6):
        text = f"{value:.{digits}f}"
        if float(text) not in (0.0, 1.0, -1.0) or value in (0.0, 1.0, -1.0):
            return text
    return repr(value)


def signed(value: Any) -> str:
    """A change or lag, with its sign."""
    positive = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    return f"+{shown(value)}" if positive else shown(value)


def setting(value: Any) -> str:
    """A config value as one would type it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def cell(value: Any) -> str:
    """A text inside a Markdown table or line: no cell borders, tags, code marks or line breaks."""
    text = str(value).replace("\\", "\\\\").replace("|", "\\|").replace("`", "\\`")
    return " ".join(text.replace("<", "&lt;").replace(">", "&gt;").split())


def script_json(value: Any) -> Markup:
    """JSON for a script element: no character in it can end the element or start a comment."""
    text = value if isinstance(value, str) else json.dumps(value)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def figure_json(figure: go.Figure) -> Markup:
    """A figure for a script element."""
    return script_json(figure.to_json())


@cache
def plotly_js() -> Markup:
    """plotly.js itself, to be inlined once a page."""
    return Markup(get_plotlyjs())


@cache
def _environment(*, markup: bool) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=markup,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        shown=shown, signed=signed, setting=setting, cell=cell, script_json=script_json
    )
    return environment


def render(template: str, **values: Any) -> str:
    """A template with its values; `.html` templates escape everything they are given."""
    return _environment(markup=template.endswith(".html")).get_template(template).render(**values)
