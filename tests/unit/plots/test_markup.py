"""Texts that users type are literal inside Plotly."""

from __future__ import annotations

from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.page_style import legend_rows, wrap


def test_tags_entities_templates_and_line_breaks_are_taken_literally():
    assert plain("<a href='x'>&amp;") == "&lt;a href='x'&gt;&amp;amp;"
    assert plain("%{y}") == "%&#123;y}"
    assert plain("a\nb") == "a b"


def test_wrap_keeps_all_words_and_the_width():
    text = "one two three four five six"
    assert " ".join(wrap(text, 9)) == text
    assert all(len(line) <= 9 for line in wrap(text, 9))
    assert wrap("incomprehensibilities", 5) == ["incomprehensibilities"]


def test_legend_rows_grow_with_the_names():
    assert legend_rows(["L0.H0"]) == 1
    assert legend_rows([f"L{layer}.H{head}" for layer in range(4) for head in range(4)]) > 3
