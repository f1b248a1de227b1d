"""One figure as a small file for a page of the documentation."""

from __future__ import annotations

from pathlib import Path

import plotly.graph_objects as go

from interp_shortcuts.reports.figure_page import write_figure


def test_the_file_is_small_safe_and_always_the_same(tmp_path: Path):
    figure = go.Figure([{"type": "scatter", "y": [1, 2], "name": "</script>"}], {"height": 321})
    path = write_figure(figure, tmp_path / "figures" / "a.html", title="<b>rates</b>")
    text = path.read_text(encoding="utf-8")
    assert len(text) < 20_000
    assert "min-height: 321px" in text
    assert "&lt;b&gt;rates&lt;/b&gt;" in text
    assert text.count("</script>") == 3  # its own; that of the data is escaped
    assert 'src="plotly.min.js"' in text
    again = write_figure(figure, tmp_path / "b.html", title="<b>rates</b>")
    assert again.read_bytes() == path.read_bytes()
