"""`interp-shortcuts sweep`: what it accepts, shows and writes. Training it is in `sweeps/`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from interp_shortcuts.cli import main
from interp_shortcuts.cli.options import parse
from interp_shortcuts.cli.sweep_options import SweepRunCommand, SweepStatusCommand
from interp_shortcuts.cli.sweeping import chosen_engine
from interp_shortcuts.sweeps import LocalEngine, RayEngine, Sweep, read_results, run_sweep
from interp_shortcuts.sweeps.engines import InProcessEngine
from interp_shortcuts.sweeps.folder import SweepFolder
from interp_shortcuts.sweeps.script import load_sweeps

SCRIPT = """
from interp_shortcuts import presets
from interp_shortcuts.sweeps import Sweep
grid = [{"n_layers": 1}, {"n_layers": 2}, {"n_train": 2000}]
sweep = Sweep(name="tiny", base=presets.smoke(n_steps=2), grid=grid, seeds="0-1")
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("tiny.py").write_text(SCRIPT)
    return Path("tiny.py")


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trains in this process, which has torch loaded already."""
    monkeypatch.setattr("interp_shortcuts.cli.sweeping.chosen_engine", lambda _: InProcessEngine())


def test_run_is_the_default():
    short, long = (parse(["sweep", *word, "f.py", "--workers", "3"]) for word in ([], ["run"]))
    assert short == long
    assert isinstance(short, SweepRunCommand)
    assert (short.file, short.workers, short.engine) == (Path("f.py"), 3, "local")
    assert isinstance(parse(["sweep", "status", "runs/x"]), SweepStatusCommand)
    assert isinstance(parse(["sweep", "--dry-run", "f.py"]), SweepRunCommand)


def test_flags_describe_the_engine():
    local = parse(["sweep", "f.py", "--workers", "3"])
    flags = "--engine ray --ray-address host:1 --num-cpus 2 --num-gpus 0.5 --memory 4 --workers 9"
    ray = parse(["sweep", "f.py", *flags.split()])
    assert isinstance(local, SweepRunCommand)
    assert isinstance(ray, SweepRunCommand)
    assert chosen_engine(local) == LocalEngine(3)
    assert chosen_engine(ray) == RayEngine(
        address="host:1", num_cpus=2.0, num_gpus=0.5, memory=4.0, workers=9
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["tiny.py", "--num-gpus", "1"], "--num-gpus is for --engine ray"),
        (["tiny.py", "--ray-address", "auto"], "--ray-address is for --engine ray"),
        (["tiny.py", "--workers", "0"], "`workers` must be at least 1; got 0"),
        (["tiny.py", "--threads", "0"], "`threads` must be at least 1; got 0"),
        (["none.py"], "`none.py` is no file"),
        (["status", "none.py"], "`none.py` is no file"),
        (["status", ".", "--out", "x"], "--out belongs to a FILE"),
        (["tiny.py", "--engine", "slurm"], "slurm"),
        ([], "Expected one of {run, status, results}"),
    ],
)
def test_misuse_is_exit_code_2(
    file: Path, args: list[str], message: str, capsys: pytest.CaptureFixture[str]
):
    assert main(["sweep", *args]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert [path.name for path in Path().iterdir()] == [file.name]


def test_a_script_with_both_names_is_refused(file: Path, capsys: pytest.CaptureFixture[str]):
    file.write_text(f"{SCRIPT}sweeps = [sweep]\n")
    assert main(["sweep", str(file), "--dry-run"]) == 2
    assert "must define one of `sweep` and `sweeps`; it has both" in capsys.readouterr().err


def test_another_plan_in_the_folder_is_told(file: Path, capsys: pytest.CaptureFixture[str]):
    SweepFolder(Path("runs/tiny")).write_sweep(load_sweeps(file)[0])
    for word in ("status", "results"):
        assert main(["sweep", word, str(file)]) == 0
        assert capsys.readouterr().err == ""
    file.write_text(SCRIPT.replace(', {"n_train": 2000}', ""))
    for word in ("status", "results"):
        assert main(["sweep", word, str(file)]) == 0
        out, err = capsys.readouterr()
        assert "runs/tiny holds another plan than tiny.py: 3 cells and 6 runs there" in err
        assert "2 cells and 4 runs in the script. What follows is of the plan in the folder" in err
        assert out
        assert main(["sweep", word, "runs/tiny"]) == 0
        assert capsys.readouterr().err == ""
    assert len(read_results("runs/tiny/results.csv")) == 6


@pytest.mark.usefixtures("in_process")
def test_cells_that_a_new_plan_drops_are_told(file: Path, capsys: pytest.CaptureFixture[str]):
    small = SCRIPT.replace('{"n_layers": 2}, {"n_train": 2000}', "").replace("0-1", "0")
    SweepFolder(Path("runs/tiny")).write_sweep(load_sweeps(file)[0])
    file.write_text(small)
    for flags, code in ((["--dry-run"], 0), ([], 0)):
        assert main(["sweep", str(file), *flags]) == code
        assert (
            "warning: runs/tiny: the new plan drops 5 runs of 3 cells of the plan before "
            "(n_layers=2; n_train=2000; n_layers=1)" in capsys.readouterr().err
        )
    assert main(["sweep", str(file)]) == 0
    assert "drops" not in capsys.readouterr().err


def test_a_folder_without_a_sweep_is_an_error(file: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["sweep", "status", "."]) == 1
    assert "no sweep folder: it has no sweep.json" in capsys.readouterr().err


@pytest.mark.usefixtures("in_process")
def test_a_sweep_is_trained_and_its_failures_are_shown(
    file: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["sweep", str(file)]) == 1
    out, err = capsys.readouterr()
    folder = Path("runs/tiny").absolute()
    assert out.splitlines() == [f"runs/tiny/results.{kind}" for kind in ("csv", "parquet")]
    assert err.count(f"error: {folder}/runs/") == 2
    assert "tiny: 4 of 6 runs finished" in err
    table = read_results("runs/tiny/results.csv")
    assert sorted(table["status"]) == ["failed"] * 2 + ["finished"] * 4

    for arg in (str(file), "runs/tiny"):
        assert main(["sweep", "status", arg]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == "runs/tiny: 6 runs: 4 finished, 2 failed"
        told = [f"{n} {outcome}" for outcome, n in Counter(table["outcome"][:2]).items()]
        assert lines[1] == f"  n_layers=1    2 of 2 finished  {', '.join(told)}"
        assert lines[3] == "  n_train=2000  0 of 2 finished"
        assert [line.split(": ")[1] for line in lines[4:]] == ["failed", "failed"]

    Path("runs/tiny/results.csv").unlink()
    assert main(["sweep", "results", "runs/tiny"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "runs/tiny/results.csv"
    assert len(read_results("runs/tiny/results.csv")) == 6


def test_a_dry_run_trains_nothing_and_says_what_is_left(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("interp_shortcuts.cli.sweeping.cpu_count", lambda: 2)
    Path("tiny.py").write_text(SCRIPT.replace(', {"n_train": 2000}', ""))
    (sweep,) = load_sweeps(file)
    one = Sweep(name=sweep.name, base=sweep.base, grid=sweep.grid, seeds=[0])
    run_sweep(one, out="runs/tiny", engine=InProcessEngine(), progress=False)
    before = sorted(Path().rglob("*"))

    assert main(["sweep", str(file), "--dry-run"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "tiny: 2 cells x 2 seeds = 4 runs, in runs/tiny"
    assert out[1].startswith("  n_layers=1  1 of 2 runs ended; ")
    assert out[3].startswith("left: 2 runs, ")
    assert out[4].startswith("1 CPU thread, ")
    assert out[5].endswith(" with 2 workers at once")
    assert sorted(Path().rglob("*")) == before
