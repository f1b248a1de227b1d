"""The benchmarks agree with their plain sides, at tiny sizes. Nothing here looks at times."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def threads_as_before():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def benchmark(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.usefixtures("threads_as_before")
def test_tracking_gives_the_numbers_of_the_plain_loop(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "tracking.json"
    code = benchmark("tracking", monkeypatch).main(
        json=file, threads=1, checkpoints=2, plain_checkpoints=1, examples=32, in_process=True
    )
    found = json.loads(file.read_text())
    assert code == 0
    assert {"ratio", "seconds", "max_abs_difference", "peak_memory_ratio"} <= set(found)
    assert found["max_abs_difference"] < 1e-5
    assert found["peak_memory_ratio"] is None
    assert math.isfinite(found["ratio"])
    by_example = found["differences"]["by example"]
    assert by_example["n_differ"] <= by_example["n"] / 100
    for name in found["not_compared"]:  # what follows from the task alone
        assert name.endswith(("_n", "_chance", "_floor")) or "example" in name
    assert "cross_split_patching" in capsys.readouterr().out


@pytest.mark.usefixtures("threads_as_before")
def test_modular_gives_the_losses_of_the_plain_loop(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "modular.json"
    run = benchmark("modular", monkeypatch)
    code = run.main(quick=True, json=file, threads=1, n_steps=2, modulus=11, widths=(17, 33))
    found = json.loads(file.read_text())
    assert code == 0
    assert found["max_abs_difference"] < 1e-5
    for width in (17, 33):
        assert math.isfinite(found[f"ratio_{width}"])
        assert found[f"share_{width}"] > 0
    assert "largest difference" in capsys.readouterr().out
    monkeypatch.setattr(run, "FASTER", math.inf)
    assert run.main(threads=1, n_steps=1, modulus=11, widths=(17,)) == 1  # never fast enough
    monkeypatch.setattr(run, "LARGEST_DIFFERENCE", -1.0)
    assert run.main(quick=True, threads=1, n_steps=1, modulus=11, widths=(17,)) == 1


@pytest.mark.usefixtures("threads_as_before")
def test_attribution_gives_the_numbers_of_the_plain_loop(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "attribution.json"
    sizes = {"n_layers": 2, "d_model": 32, "length": 3, "steps": 120, "examples": 20, "repeats": 1}
    code = benchmark("attribution", monkeypatch).main(json=file, **sizes)
    found = json.loads(file.read_text())
    assert code == 0
    assert found["max_abs_difference"] == 0
    assert found["n_components"] == 10
    assert found["largest_drop"] > 0.05  # there was something to lose
    assert math.isfinite(found["ratio"])
    assert "L1.mlp" in capsys.readouterr().out
