"""Timelines laid over each other: at each seed's own onset, within one cell and one outcome."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from synthetic_sweep import run_row, typed
from synthetic_timeline import synthetic_dataset

from interp_shortcuts.errors import ConfigError, StorageError
from interp_shortcuts.sweeps.alignment import Aligned, align
from interp_shortcuts.sweeps.quantities import QUANTITIES, Quantity
from interp_shortcuts.timelines.timeline import Timeline

ACCURACY = Quantity("adversarial_accuracy", "accuracy", "accuracy", {"split": "adversarial"})
SETTING = {"ratio": 0.9}


def timeline(steps: list[int], values: list[float]) -> Timeline:
    """A timeline that knows adversarial accuracy alone."""
    data = xr.Dataset(
        {"accuracy": (("step", "split"), np.array(values, dtype=np.float32)[:, None])},
        coords={"step": steps, "split": ["adversarial"]},
    )
    return Timeline(data)


def table(*specs: tuple[str, int | None]) -> pd.DataFrame:
    rows = [run_row(what, seed, SETTING, onset) for seed, (what, onset) in enumerate(specs)]
    return typed(rows)


def test_curves_are_aligned_at_each_seeds_own_onset():
    runs = table(("generalised", 10), ("generalised", 30))
    lines = {
        runs["run"][0]: timeline([0, 10, 20, 30], [0.0, 0.2, 0.6, 1.0]),
        runs["run"][1]: timeline([20, 30, 40, 50], [0.1, 0.4, 0.8, 1.0]),
    }
    curves = align(runs, lines, quantities=[ACCURACY], points=4).curves
    assert curves["offset"].tolist() == [-10, 0, 10, 20]
    assert curves["n"].tolist() == [2, 2, 2, 2]
    np.testing.assert_allclose(curves["median"], [0.05, 0.3, 0.7, 1.0], atol=1e-5)
    np.testing.assert_allclose(curves["low"], [0.025, 0.25, 0.65, 1.0], atol=1e-5)
    np.testing.assert_allclose(curves["high"], [0.075, 0.35, 0.75, 1.0], atol=1e-5)


def test_between_evaluations_the_joining_line_is_read_and_nothing_beyond_them():
    runs = table(("generalised", 10))
    lines = {runs["run"][0]: timeline([10, 30, 50], [0.0, 1.0, float("nan")])}
    curves = align(runs, lines, quantities=[ACCURACY], points=4, spacing=10).curves
    # not before 10; not beside the undefined value at 50
    assert curves["offset"].tolist() == [0, 10, 20]
    np.testing.assert_allclose(curves["median"], [0.0, 0.5, 1.0])


def test_outcomes_are_apart_and_every_run_is_listed():
    runs = table(
        ("generalised", 10), ("partial", 10), ("shortcut", None), ("failed", None), ("partial", 20)
    )
    line = timeline([0, 10, 20], [0.0, 0.1, 0.2])
    found = align(runs, {runs["run"][k]: line for k in (0, 1, 2)}, quantities=[ACCURACY], points=1)
    assert set(found.curves["outcome"]) == {"generalised", "partial"}
    assert set(found.curves["seeds"]) == {1}
    assert found.runs["left_out"].tolist() == [
        "",
        "",
        "no onset (shortcut)",
        "failed",
        "not tracked",
    ]


def test_heads_are_named_by_their_rank_at_the_onset_in_each_seed():
    runs = table(("generalised", 30), ("generalised", 30))
    steps = [0, 30, 60]

    def heads(first: list[float], second: list[float]) -> Timeline:
        qk = np.array([first, second]).T[:, None, :]  # step layer head
        ov = qk + 10  # tells which head a value is of
        dims = ("step", "layer", "head")
        coords = {"step": steps, "layer": [0], "head": [0, 1]}
        return Timeline(
            xr.Dataset({"qk_spearman": (dims, qk), "ov_class_fraction": (dims, ov)}, coords=coords)
        )

    strong, weak = [0.1, -0.9, 0.2], [0.0, 0.4, 0.8]  # |-0.9| > 0.4 at the onset
    lines = {runs["run"][0]: heads(strong, weak), runs["run"][1]: heads(weak, strong)}
    chosen = [q for q in QUANTITIES if q.name in ("qk_spearman", "ov_class_fraction")]
    curves = align(runs, lines, quantities=chosen, points=1, spacing=30).curves
    assert set(curves["component"]) == {"L0 head 1", "L0 head 2"}
    pick = curves.set_index(["quantity", "component", "offset"])["median"]
    assert pick["qk_spearman", "L0 head 1", 0] == pytest.approx(-0.9)
    assert pick["ov_class_fraction", "L0 head 1", 30] == pytest.approx(10.2)
    assert pick["ov_class_fraction", "L0 head 2", 30] == pytest.approx(10.8)


def test_a_full_timeline_gives_every_quantity_for_its_components():
    data = synthetic_dataset("generalised", n_steps=30, causal_every=3)
    line = Timeline(data)
    onset = line.phases().onset
    assert onset is not None
    runs = table(("generalised", onset))
    curves = align(runs, {runs["run"][0]: line}, points=10).curves
    assert set(curves["quantity"]) == {quantity.name for quantity in QUANTITIES}
    at_onset = curves[(curves["offset"] == 0) & (curves["quantity"] == "gradient_cosine")]
    expected = data["gradient_cosine"].sel(step=onset, part="model").item()
    assert at_onset["median"].item() == pytest.approx(expected, abs=1e-5)
    transfers = curves.loc[curves["quantity"] == "rule_transfer", "component"]
    assert {"L0 head 1", "L1.mlp", "L0.heads", "all heads"} <= set(transfers)
    assert not transfers.str.contains(r"\.H").any()


def test_what_is_written_is_read_back(tmp_path: Path):
    runs = table(("generalised", 10), ("shortcut", None))
    lines = {runs["run"][0]: timeline([0, 10, 20], [0.0, 0.1, 0.2])}
    found = align(runs, lines, quantities=[ACCURACY], points=1)
    files = found.write(tmp_path / "aligned")
    assert [file.name for file in files] == ["aligned.csv", "aligned_runs.csv"]
    again = Aligned.read(tmp_path / "aligned")
    pd.testing.assert_frame_equal(again.curves, found.curves)
    pd.testing.assert_frame_equal(again.runs, found.runs)
    files[1].unlink()
    with pytest.raises(StorageError, match=r"aligned_runs.csv' is missing"):
        Aligned.read(tmp_path / "aligned")
    runs.to_csv(files[1], index=False)
    with pytest.raises(StorageError, match=r"must have the columns cell, seed, run, outcome"):
        Aligned.read(tmp_path / "aligned")


def test_no_tracked_run_gives_no_curve(tmp_path: Path):
    found = align(table(("shortcut", None)), {})
    assert found.curves.empty
    found.write(tmp_path / "none")
    assert Aligned.read(tmp_path / "none").curves.empty


def test_what_makes_no_sense_is_refused():
    runs = table(("generalised", 10))
    with pytest.raises(ConfigError, match=r"`points` must be at least 1; got 0"):
        align(runs, {}, points=0)
    with pytest.raises(ConfigError, match=r"'elsewhere' is not"):
        align(runs, {"elsewhere": timeline([0], [0.0])})
