"""The command line: what it prints, its exit codes, and that help needs no torch."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from interp_shortcuts import __version__
from interp_shortcuts.cli import main
from interp_shortcuts.cli.options import DemoCommand, TrainCommand, parse
from interp_shortcuts.presets import PRESETS
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.runs.run import Run

COMMANDS = ["demo", "presets", "train", "sweep", "track", "report"]
HELP = pytest.mark.parametrize(
    "args",
    [
        ["--help"],
        *([name, "--help"] for name in COMMANDS),
        ["train", "smoke", "--help"],
        ["sweep", "status", "--help"],
    ],
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs, trained, tracked and reported by the command line."""
    out = tmp_path_factory.mktemp("runs")
    assert main(["train", "smoke", "--seeds", "0-1", "--workers", "1", "--out", str(out)]) == 0
    assert main(["track", str(out)]) == 0
    assert main(["report", str(out)]) == 0
    return out


def seeds_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("smoke-*-seed*"))


# What is accepted


def test_version(capsys: pytest.CaptureFixture[str]):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"interp-shortcuts {__version__}\n"


@HELP
def test_help(args: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(args) == 0
    assert capsys.readouterr().out.startswith("usage: interp-shortcuts")


def test_help_lists_the_commands_that_there_are(capsys: pytest.CaptureFixture[str]):
    main(["--help"])
    out = capsys.readouterr().out
    assert f"{{{','.join(COMMANDS)}}}" in out


def test_every_field_of_a_run_is_a_flag_of_every_preset(capsys: pytest.CaptureFixture[str]):
    config = RunConfig()
    parts = [config.task, config.model, config.optim, config.schedule]
    fields = {name for part in parts for name in type(part).model_fields} | {"early_stop"}
    for command in (["demo"], ["train", "max-parity-paper"]):
        main([*command, "--help"])
        out = capsys.readouterr().out
        shown = {name for name in fields if f"--{name.replace('_', '-')} " in out}
        assert fields - shown == {"rule_fingerprint"}
        for part in parts:
            for name, field in type(part).model_fields.items():
                assert field.description or name == "rule_fingerprint"


def test_a_sequence_preset_has_the_flags_of_its_own_task(capsys: pytest.CaptureFixture[str]):
    config = PRESETS["sequence_sorting_demo"]()
    parts = [config.task, config.model, config.optim, config.schedule]
    fields = {name for part in parts for name in type(part).model_fields}
    main(["train", "sequence-sorting-demo", "--help"])
    out = capsys.readouterr().out
    assert {name for name in fields if f"--{name.replace('_', '-')} " not in out} == set()
    for flag in ("--ratio", "--rule", "--n-train", "--early-stop"):
        assert f"{flag} " not in out
    for part in parts:
        assert all(field.description for field in type(part).model_fields.values())
    main(["train", "max-parity-demo", "--help"])
    assert "--train-max " not in capsys.readouterr().out


def test_flags_of_a_sequence_preset_become_overrides():
    flags = "--train-max 4 --stop-at None --positions learned --batch-size 8"
    command = parse(["train", "sequence-sorting-demo", *flags.split()])
    assert isinstance(command, TrainCommand)
    assert command.overrides() == {
        "train_max": 4,
        "stop_at": None,
        "positions": "learned",
        "batch_size": 8,
    }


def test_seeds_of_a_sequence_task_are_trained(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    sizes = "--n-layers 1 --d-model 16 --d-mlp 16 --n-per-length 5 --n-steps 2"
    command = ["train", "sequence-reversal-demo", *sizes.split(), "--out", str(tmp_path)]
    assert main([*command, "--seeds", "0-1", "--workers", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.endswith(": finished") for line in lines] == [True, True]
    runs = [Run.open(path) for path in sorted(tmp_path.glob("sequence-reversal-demo-*-seed*"))]
    assert [run.config.seed for run in runs] == [0, 1]
    assert all(set(run.ood_accuracies) == {6, 7, 8} for run in runs)
    assert main([*command, "--seeds", "0-1", "--workers", "1", "--resume"]) == 0


def test_flags_become_overrides():
    flags = "--seeds 0-4 --ratio 0.8 --n-layers 1 --lr 3e-4 --batch-size 64 --every 20"
    command = parse(["train", "max-parity-demo", *flags.split(), "--early-stop", "3"])
    assert isinstance(command, TrainCommand)
    assert (command.preset, command.seeds) == ("max_parity_demo", "0-4")
    assert command.overrides() == {
        "ratio": 0.8,
        "n_layers": 1,
        "lr": 3e-4,
        "batch_size": 64,
        "every": 20,
        "early_stop": 3,
    }


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_without_flags_is_the_preset(name: str):
    command = parse(["train", PRESETS[name].command])
    assert isinstance(command, TrainCommand)
    assert (command.preset, command.overrides()) == (name, {})


def test_the_demo_is_max_parity_demo():
    command = parse(["demo"])
    assert isinstance(command, DemoCommand)
    assert (command.preset, command.out) == ("max_parity_demo", Path("runs/demo"))


def test_presets_lists_description_and_cost(capsys: pytest.CaptureFixture[str]):
    assert main(["presets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [preset.command for preset in PRESETS.values()]
    for line, preset in zip(lines, PRESETS.values(), strict=True):
        assert preset.description in line
        assert preset.cost in line


# Misuse


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "Expected one of"),
        (["trian"], "trian"),
        (["train", "smoke", "--ratoi", "0.8"], "--ratoi"),
        (["train", "smoke", "--ratio", "much"], "--ratio"),
        (["train", "smoke", "--ratio", "1.5"], "error: `ratio` (=1.5) must be"),
        (["train", "smoke", "--n-heads", "3"], "error: `n_heads` (=3) must divide `d_model`"),
        (["train", "smoke", "--seeds", "4-0"], "rising ranges"),
        (["train", "sequence-sorting-demo", "--ratio", "0.8"], "--ratio"),
        (["train", "sequence-sorting-demo", "--train-min", "9"], "error: `train_min` (=9) must be"),
        (["train", "smoke", "--workers", "0"], "error: `workers` must be at least 1; got 0"),
        (["track"], "error: give run folders"),
        (["track", "no/such/folder"], "error: `no/such/folder` matches nothing"),
        (["report", "no-such-*"], "error: `no-such-*` matches nothing"),
    ],
)
def test_misuse_is_exit_code_2(
    args: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert main(args) == 2
    err = capsys.readouterr().err
    assert message in " ".join(err.split())
    assert "Traceback" not in err
    assert not list(tmp_path.iterdir())


def test_a_folder_without_runs_is_misuse(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    (tmp_path / "notes.txt").write_text("no run")
    assert main(["track", str(tmp_path), str(tmp_path / "notes.txt")]) == 2
    assert "no run folder (one with config.json) in" in capsys.readouterr().err


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]):
    assert main(["train", "smoke", "--ratio", "1.5", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


# Train, track, report


def test_each_seed_has_a_folder_a_page_and_a_place_in_the_index(trained: Path):
    first, second = seeds_in(trained)
    assert (first.name[:-1], second.name[:-1]) == (first.name[:-1],) * 2
    index = (trained / "index.html").read_text()
    for folder in (first, second):
        assert (folder / "timeline.nc").exists()
        assert (folder / "report.html").exists()
        assert f'href="{folder.name}/report.html"' in index
        assert "../index.html" in (folder / "report.html").read_text()
        assert json.loads((folder / "config.json").read_text())["name"] == "smoke"


def test_track_prints_a_sentence_a_run(trained: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["track", *map(str, trained.iterdir())]) == 0  # what the shell makes of runs/*
    out, err = capsys.readouterr()
    assert [line.split(": ")[0] for line in sorted(out.splitlines())] == [
        str(folder) for folder in seeds_in(trained)
    ]
    assert f"not a run folder, left out: {trained / 'index.html'}" in err


def test_report_of_one_run_writes_no_index(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    folder = tmp_path / "one"
    shutil.copytree(seeds_in(trained)[0], folder)
    assert main(["report", str(folder)]) == 0
    assert capsys.readouterr().out == f"{folder / 'report.html'}\n"
    assert "../index.html" not in (folder / "report.html").read_text()
    assert list(tmp_path.iterdir()) == [folder]


def test_training_again_needs_resume(trained: Path, capsys: pytest.CaptureFixture[str]):
    again = ["train", "smoke", "--seeds", "0", "--out", str(trained)]
    assert main(again) == 2
    assert "add --resume to go on with what is there" in capsys.readouterr().err
    assert main([*again, "--resume"]) == 0
    assert capsys.readouterr().out == f"{seeds_in(trained)[0]}: finished\n"


def test_a_failed_seed_is_shown_and_stops_none(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Tokens for 500 training examples do not exist, so seed 0 fails; a good run lies beside it."""
    assert main(["train", "smoke", "--n-train", "500", "--out", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    (failed,) = seeds_in(tmp_path)
    assert out == f"{failed}: failed\n"
    assert "error: seed 0: " in err
    assert "error: 1 of 1 seeds failed: 0" in err

    good = tmp_path / "good"
    shutil.copytree(seeds_in(trained)[0], good)
    assert main(["report", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines() == [str(good / "report.html"), str(tmp_path / "index.html")]
    assert f"error: {failed}: training failed: TaskError: " in err
    assert "TaskError" in (tmp_path / "index.html").read_text()


def test_an_unfinished_run_is_noted_and_in_no_rate(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    folder = tmp_path / "stopped"
    shutil.copytree(seeds_in(trained)[0], folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest |= {"status": "stopped", "step": 8}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert main(["report", str(tmp_path)]) == 0
    assert "training stopped at step 8 of 12; in no rate" in capsys.readouterr().err
    assert "training stopped at step 8 of 12" in (tmp_path / "index.html").read_text()


def test_ctrl_c_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    from interp_shortcuts.training import loop

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "train", interrupted)
    assert main(["train", "smoke", "--out", str(tmp_path)]) == 130
    assert "interrupted; the same command with --resume goes on" in capsys.readouterr().err
    assert main(["demo", "--out", str(tmp_path / "demo")]) == 130
    assert "interrupted; the same command goes on" in capsys.readouterr().err


DEMO = ["--length", "3", "--n-integers", "8", "--n-train", "96", "--d-model", "16"]
DEMO += ["--n-validation", "32", "--n-adversarial", "32", "--n-steps", "2", "--dense-until", "0"]


def test_demo_prints_the_report_last_and_is_reused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "demo"
    for _ in range(2):
        assert main(["demo", "--out", str(out), *DEMO]) == 0
        assert capsys.readouterr().out.splitlines()[-1] == str(out / "report.html")
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["resumed"] == []  # the second call found it finished
    assert main(["demo", "--out", str(out), *DEMO, "--ratio", "0.8"]) == 1
    assert "`task.ratio` (=0.8, in the folder 0.9)" in capsys.readouterr().err


# In a process of its own


def run_program(*args: str, code: str = "") -> subprocess.CompletedProcess[str]:
    script = f"import sys; from interp_shortcuts.cli import main; status = main({list(args)!r})\n"
    return subprocess.run(
        [sys.executable, "-c", script + code], capture_output=True, text=True, check=True
    )


@pytest.mark.parametrize("args", [["--help"], ["presets"], ["train", "smoke", "--help"]])
def test_help_loads_no_torch(args: list[str]):
    heavy = "['torch', 'transformer_lens', 'xarray', 'pandas', 'plotly']"
    code = f"print('loaded:', [m for m in {heavy} if m in sys.modules], status)"
    assert run_program(*args, code=code).stdout.splitlines()[-1] == "loaded: [] 0"


def test_the_installed_command_answers():
    program = Path(sys.executable).with_name("interp-shortcuts")
    done = subprocess.run([program, "track", "nothing-here"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("error: `nothing-here` matches nothing")
