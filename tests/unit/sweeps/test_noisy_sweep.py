"""Sweeps under label noise: planned, trained, shown and tabled like others, with other columns."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from interp_shortcuts.cli import main
from interp_shortcuts.errors import ConfigError, StorageError
from interp_shortcuts.presets import modular_noise_demo
from interp_shortcuts.runs.run import Run
from interp_shortcuts.sweeps.columns import COLUMNS, NOISY_COLUMNS
from interp_shortcuts.sweeps.plan import Sweep
from interp_shortcuts.sweeps.rates import generalisation_rates
from interp_shortcuts.sweeps.table import read_results, results

SCRIPT = """
from interp_shortcuts import presets
from interp_shortcuts.sweeps import Sweep

base = presets.modular_noise_demo(
    modulus=7, width=8, n_steps=4, dense_until=0, every=2, lr_schedule="linear"
)
sweep = Sweep(name="tiny", base=base, grid={"noise": [0.0, 0.4], "tied": [False, True]}, seeds="0")
"""
OPTIONS = ["--workers", "1"]


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("noisy") / "tiny.py"
    path.write_text(SCRIPT)
    out = path.parent / "out"
    assert main(["sweep", str(path), "--out", str(out), *OPTIONS]) == 0
    return path


def test_a_dry_run_estimates_the_cost(script: Path, capsys: pytest.CaptureFixture[str]):
    code = main(["sweep", str(script), "--out", str(script.parent / "other"), "--dry-run"])
    said = capsys.readouterr().out
    assert code == 0
    assert "4 runs" in said
    assert not (script.parent / "other").exists()


def test_the_table_has_final_accuracies_of_each_group(script: Path):
    table = results(script.parent / "out")
    place = NOISY_COLUMNS.index("chance")
    assert list(table.columns) == [*NOISY_COLUMNS[:place], "tied", *NOISY_COLUMNS[place:]]
    assert set(table["status"]) == {"finished"}
    assert set(table["error"]) == {""}
    for line in table.to_dict("records"):
        run = Run.open(script.parent / "out" / line["run"])
        last = run.curves().query("step == 4").set_index("split")["accuracy"]
        best = run.curves().query("split == 'test'")["accuracy"].max()
        for name in ("clean", "noisy", "noisy_true", "test"):
            found = line[f"final_{name}"]
            assert found == last[name] or (pd.isna(found) and pd.isna(last[name]))
        assert pd.isna(line["final_noisy"]) == (line["noise"] == 0.0)
        assert (line["best_test"], line["last_step"], line["width"]) == (best, 4, 8)
        assert line["chance"] == pytest.approx(1 / 7)
        assert line["seconds"] > 0


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_give_the_same_table(script: Path, kind: str):
    home = script.parent / "out"
    assert main(["sweep", "results", str(script), "--out", str(home)]) == 0
    pd.testing.assert_frame_equal(read_results(home / f"results.{kind}"), results(home))
    table = pd.read_csv(home / "results.csv").drop(columns="final_clean")
    table.to_csv(home / "less.csv", index=False)
    with pytest.raises(StorageError, match="lacks the column `final_clean`"):
        read_results(home / "less.csv")


def test_the_status_says_how_well_the_groups_are_fitted(
    script: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["sweep", "status", str(script), "--out", str(script.parent / "out")]) == 0
    said = capsys.readouterr().out.splitlines()
    assert any("1 of 1 finished  clean 0." in line and "test 0." in line for line in said)
    assert sum("noisy" in line.split("finished", 1)[-1] for line in said) == 2  # with noise


def test_nothing_is_counted_as_generalised():
    sweep = Sweep(name="s", base=modular_noise_demo(), grid={"noise": [0.0]}, seeds="0")
    table = pd.DataFrame(columns=list(NOISY_COLUMNS))
    with pytest.raises(ConfigError, match="generalised"):
        generalisation_rates(table)
    assert "outcome" in COLUMNS
    assert "outcome" not in NOISY_COLUMNS
    assert sweep.base.task.noise == 0.4
