"""Seeds: what the texts mean, where the runs go, and that a failed one stops none."""

from __future__ import annotations

from pathlib import Path

import pytest

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.presets import max_parity_demo, smoke
from interp_shortcuts.runs.run import Run
from interp_shortcuts.sweeps import seeds as seeds_module
from interp_shortcuts.sweeps.seeds import (
    default_workers,
    parse_seeds,
    run_folder_name,
    train_seeds,
)


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("0", (0,)),
        ("0-4", (0, 1, 2, 3, 4)),
        ("0,3,7", (0, 3, 7)),
        ("0-2,9", (0, 1, 2, 9)),
        (" 9, 0-1 ", (9, 0, 1)),
        ("1,0-2", (1, 0, 2)),
        ("5-5", (5,)),
    ],
)
def test_seeds_are_parsed_in_order_each_once(text: str, seeds: tuple[int, ...]):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "a", "0,", "4-0", "-1", "0-", "0..4", "1.5", "0 1"])
def test_what_is_no_list_of_seeds_is_refused(text: str):
    with pytest.raises(ConfigError, match=r"'0-4', '0,3,7' or '0-2,9'; got "):
        parse_seeds(text)


def test_seeds_of_a_setting_share_the_folder_name():
    first, second = (run_folder_name(max_parity_demo(seed)) for seed in (0, 11))
    assert first == f"max-parity-demo-{max_parity_demo(0).run_id[:8]}-seed0"
    assert second == first.replace("seed0", "seed11")
    assert run_folder_name(max_parity_demo(0, ratio=0.8)) != first


def test_a_failed_seed_is_recorded_and_stops_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from interp_shortcuts.training import loop

    real = loop.train

    def flaky(config, **kwargs):
        if config.seed == 0:
            raise RuntimeError("out of memory")
        return real(config, **kwargs)

    monkeypatch.setattr(loop, "train", flaky)
    ended = []
    results = train_seeds(
        [smoke(seed, n_steps=2) for seed in (0, 1)],
        out=tmp_path,
        workers=1,
        progress=False,
        on_end=ended.append,
    )
    assert [(result.status, result.ok) for result in results] == [
        ("failed", False),
        ("finished", True),
    ]
    assert str(results[0].error) == "out of memory"
    assert ended == results
    failed = Run.open(results[0].path)
    assert failed.status == "failed"
    assert failed.manifest["error"] == "RuntimeError: out of memory"


@pytest.mark.parametrize(
    ("n_runs", "threads", "workers"),
    [(1, None, 1), (3, None, 3), (9, None, 4), (9, 1, 4), (9, 2, 2), (9, 3, 1), (9, 8, 1)],
)
def test_workers_share_the_cpus(
    n_runs: int, threads: int | None, workers: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(seeds_module, "cpu_count", lambda: 4)
    assert default_workers(n_runs, threads) == workers


def test_the_same_run_twice_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"`configs` must be different runs"):
        train_seeds([smoke(0), smoke(0)], out=tmp_path)


def test_a_diverged_seed_is_not_ok(tmp_path: Path):
    wild = smoke(0, optimizer="sgd", lr=1e30, n_steps=5)
    (result,) = train_seeds([wild], out=tmp_path, progress=False)
    assert (result.status, result.ok, result.error) == ("diverged", False, None)


def test_a_failed_seed_is_gone_on_with_by_resume(tmp_path: Path):
    impossible = smoke(0, n_train=500)
    (failed,) = train_seeds([impossible], out=tmp_path, progress=False)
    assert failed.status == "failed"
    (again,) = train_seeds([impossible], out=tmp_path, progress=False, resume=True)
    assert again.status == "failed"
    assert type(again.error) is type(failed.error)


def test_seeds_of_small_batches_are_stacked(tmp_path: Path):
    configs = [smoke(seed, batch_size=16, lr=lr) for lr in (1e-3, 1e-2) for seed in (0, 1)]
    told: list[tuple[str, int]] = []
    results = train_seeds(
        configs,
        out=tmp_path,
        progress=False,
        on_start=lambda config, path: told.append(("start", config.seed)),
        on_end=lambda result: told.append(("end", result.config.seed)),
    )
    assert [result.config for result in results] == configs
    assert all(result.ok for result in results)
    assert [Run.open(result.path).manifest.get("stacked") for result in results] == [2] * 4
    assert told == [("start", 0), ("start", 1), ("end", 0), ("end", 1)] * 2


def test_stacking_can_be_asked_for_and_refused(tmp_path: Path):
    configs = [smoke(seed, batch_size=16) for seed in (0, 1)]
    apart = train_seeds(configs, out=tmp_path / "a", progress=False, stack=False, workers=1)
    assert "stacked" not in Run.open(apart[0].path).manifest
    full = [smoke(seed) for seed in (0, 1)]
    stacked = train_seeds(full, out=tmp_path / "b", progress=False, stack=True, threads=1)
    assert Run.open(stacked[0].path).manifest["stacked"] == 2
    again = train_seeds(full, out=tmp_path / "b", progress=False, stack=True)
    assert [result.status for result in again] == ["failed", "failed"]
    assert "already holds a run" in str(again[0].error)
    with pytest.raises(ConfigError, match=r"`workers` \(=2\) must be 1 for stacked runs"):
        train_seeds(configs, out=tmp_path / "c", stack=True, workers=2)
