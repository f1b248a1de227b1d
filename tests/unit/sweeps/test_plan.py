"""Plans: cells, labels, jobs, and what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from interp_shortcuts.errors import ConfigError, StorageError
from interp_shortcuts.presets import sequence_sorting_demo, smoke
from interp_shortcuts.sweeps.folder import SweepFolder
from interp_shortcuts.sweeps.plan import Sweep
from interp_shortcuts.sweeps.script import load_sweeps
from interp_shortcuts.sweeps.seeds import run_folder_name


def sweep(**fields: Any) -> Sweep:
    return Sweep(**{"name": "s", "base": smoke(7), "seeds": "0-1", **fields})


def test_cells_are_the_product_the_last_field_fastest():
    plan = sweep(grid={"n_layers": [1, 2], "ratio": [0.5, 0.9]})
    assert [cell.label for cell in plan.cells] == [
        "n_layers=1, ratio=0.5",
        "n_layers=1, ratio=0.9",
        "n_layers=2, ratio=0.5",
        "n_layers=2, ratio=0.9",
    ]
    assert plan.fields == ("n_layers", "ratio")


def test_cells_can_be_listed():
    plan = sweep(grid=[{"n_layers": 1, "lr": 0.01}, {"batch_size": None, "lr": 0.1}])
    assert [cell.label for cell in plan.cells] == ["n_layers=1, lr=0.01", "batch_size=none, lr=0.1"]
    assert plan.fields == ("n_layers", "lr", "batch_size")


def test_a_job_is_the_base_with_the_fields_and_the_seed():
    plan = sweep(grid={"ratio": [0.5, 0.9]}, seeds=range(2, 4))
    assert [(job.cell.label, job.seed) for job in plan.jobs] == [
        ("ratio=0.5", 2),
        ("ratio=0.9", 2),
        ("ratio=0.5", 3),
        ("ratio=0.9", 3),
    ]
    assert plan.jobs[2].config == smoke(3, ratio=0.5)
    assert plan.jobs[2].folder_name == run_folder_name(smoke(3, ratio=0.5))


def test_a_sequence_task_is_refused_since_the_table_is_about_shortcuts():
    with pytest.raises(ValueError, match=r"`base` must have a shortcut task.*got sequence sorting"):
        Sweep(name="a", base=sequence_sorting_demo(), seeds="0")


def test_without_a_grid_there_is_the_base_alone():
    assert [(job.cell.label, job.config) for job in sweep(seeds=[4]).jobs] == [("base", smoke(4))]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"grid": {"rato": [1]}}, r"`rato` is no field of RunConfig; .*Did you mean `ratio`"),
        ({"grid": {"ratio": []}}, r"`ratio` must have a list of at least one value; got \[\]"),
        ({"grid": {"ratio": 0.5}}, r"`ratio` must have a list of at least one value; got 0.5"),
        ({"grid": []}, r"`grid` must be values by field"),
        ({"grid": {"ratio": [1.5]}}, r"task.ratio\n.*less than or equal to 1"),
        ({"grid": {"seed": [1]}}, r"`grid` must not set `seed`: seeds are given by `seeds`"),
        ({"grid": {"task": [1]}}, r"`grid` must not set `task`: name its fields instead"),
        ({"grid": {"ratio": [0.5, 0.5]}}, r"\(ratio=0.5\), seed 0 and \(ratio=0.5\), seed 0 are"),
        ({"seeds": [1, 1]}, r"\(base\), seed 1 and \(base\), seed 1 are the same"),
        ({"seeds": []}, r"`seeds` must be numbers or a text such as '0-9', at least one"),
        ({"seeds": "4-0"}, r"rising ranges"),
        ({"seeds": 3}, r"`seeds` must be numbers"),
        ({"name": "a/b"}, r"`name` must be letters.*; got 'a/b'"),
        ({"seed": 1}, r"seed\n  Extra inputs are not permitted"),
    ],
)
def test_mistakes_are_refused_at_once(fields: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        sweep(**fields)


@pytest.mark.parametrize(
    "grid", [{"n_layers": [1, 2], "batch_size": [None, 8]}, [{"lr": 0.1}, {"lr": 0.2}], {}]
)
def test_a_plan_is_read_back_as_it_was(grid: Any, tmp_path: Path):
    plan = sweep(grid=grid)
    SweepFolder(tmp_path / "s").write_sweep(plan)
    again = SweepFolder(tmp_path / "s").read_sweep()
    assert again == plan
    assert [job.config for job in again.jobs] == [job.config for job in plan.jobs]


def test_a_folder_is_one_sweep_only(tmp_path: Path):
    home = SweepFolder(tmp_path / "s")
    home.write_sweep(sweep())
    home.write_sweep(sweep(seeds="0-5"))
    assert len(home.read_sweep().jobs) == 6
    with pytest.raises(StorageError, match=r"holds the sweep 's', not 'other'"):
        home.write_sweep(sweep(name="other"))
    (tmp_path / "notes.txt").touch()
    with pytest.raises(StorageError, match=r"is not empty and not a sweep folder"):
        SweepFolder(tmp_path).write_sweep(sweep())
    with pytest.raises(StorageError, match=r"is no sweep folder: it has no sweep.json"):
        SweepFolder(tmp_path).read_sweep()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"is damaged \(JSONDecodeError"),
        (json.dumps({"format": 9}), r"has `format` \(=9\)"),
        (json.dumps({"format": 1}), r"is damaged \(KeyError\('sweep'\)"),
        (json.dumps({"format": 1, "sweep": {"name": "s"}}), r"is no valid plan"),
    ],
)
def test_a_damaged_plan_says_so(text: str, message: str, tmp_path: Path):
    home = SweepFolder(tmp_path)
    home.plan_path.write_text(text)
    with pytest.raises(StorageError, match=message):
        home.read_sweep()


SCRIPT = """
from interp_shortcuts import presets
from interp_shortcuts.sweeps import Sweep
one = Sweep(name="one", base=presets.smoke(), seeds="0")
two = Sweep(name="two", base=presets.smoke(), seeds="0")
"""


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("sweep = one", ["one"]),
        ("sweeps = [two, one]", ["two", "one"]),
        ("sweeps = {'a': one, 'b': two}", ["one", "two"]),
    ],
)
def test_a_script_gives_its_sweeps(line: str, names: list[str], tmp_path: Path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT + line)
    assert [plan.name for plan in load_sweeps(path)] == names


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", r"must define `sweep = Sweep\(...\)`, .*; it has neither"),
        ("sweep = 3", r"must define `sweep"),
        ("sweeps = [one, one]", r"two sweeps have the same `name`"),
        ("1 / 0", r"failed: ZeroDivisionError: division by zero"),
        ("Sweep(name='x', base=presets.smoke(), seeds=[])", r"py': `seeds` must be numbers"),
        ("presets.smoke(ratoi=1)", r"py': `ratoi` is no field"),
    ],
)
def test_a_script_that_defines_no_sweep_is_refused(line: str, message: str, tmp_path: Path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT + line)
    with pytest.raises(ConfigError, match=message):
        load_sweeps(path)
    with pytest.raises(ConfigError, match=r"is no file"):
        load_sweeps(tmp_path / "none.py")


def test_a_script_finds_what_lies_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "beside_the_sweep.py").write_text("SEEDS = '5-6'")
    path = tmp_path / "script.py"
    path.write_text(
        f"{SCRIPT}from beside_the_sweep import SEEDS\n"
        "sweep = Sweep(name='s', base=presets.smoke(), seeds=SEEDS)"
    )
    assert load_sweeps(path)[0].seeds == (5, 6)
