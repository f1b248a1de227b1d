"""Makes a user's text safe inside Plotly, which reads a subset of HTML and `%{...}` templates.

The escaping of whole pages is left to the reports' templates.
"""

from __future__ import annotations

import html


def plain(text: object) -> str:
    """`text` as Plotly will show it literally: no tags, no entities, no templates.

    Args:
        text: Anything that a user may have typed: a task, feature or split name.
    """
    escaped = html.escape(str(text), quote=False)
    return escaped.replace("%{", "%&#123;").replace("\n", " ").replace("\r", " ")
