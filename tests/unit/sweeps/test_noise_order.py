"""Which labels are fitted first: the blind accuracy by theory, events by hand, runs by recount."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from idx_folder import write_idx_folder
from scipy import stats

from interp_shortcuts import train
from interp_shortcuts.errors import ConfigError
from interp_shortcuts.models.any_model import answer_logits
from interp_shortcuts.plots.noise_order import noise_order_figure
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.runs.trajectory import Trajectory
from interp_shortcuts.sweeps.noise_order import (
    COURSES,
    EVENTS,
    blind_accuracy,
    event_summary,
    first_steps,
    noise_course,
    noise_curves,
    noise_events,
)
from interp_shortcuts.tasks.described import task_of
from interp_shortcuts.tasks.digits_config import DigitsConfig
from interp_shortcuts.tasks.label_noise import with_noise


@pytest.mark.parametrize("right", [0.0, 0.3, 1.0])
def test_the_blind_accuracy_is_that_of_answers_that_know_nothing_of_the_noise(right):
    """100,000 answers that favour class 0, which noise does not: within 5 standard errors."""
    draw = np.random.default_rng(0)
    n, n_classes = 100_000, 10
    true = torch.from_numpy(draw.integers(n_classes, size=n))
    observed = with_noise(true, np.arange(n_classes), noise=1.0, seed=1).numpy()
    wrong = (true.numpy() + draw.integers(1, 3, size=n)) % n_classes
    answers = np.where(draw.random(n) < right, true.numpy(), wrong)
    share = (answers == true.numpy()).mean()
    (expected,) = blind_accuracy(np.array([share]), n_classes=n_classes)
    error = np.sqrt(expected * (1 - expected) / n)
    assert (answers == observed).mean() == pytest.approx(expected, abs=5 * error)


def test_the_papers_numbers_are_those_of_a_blind_network():
    """arXiv 2605.18022: clean 2.9% and 46.3% at epochs 1 and 2; noisy 10.9% and 6.5%."""
    blind = blind_accuracy(np.array([0.029, 0.463]), n_classes=10)
    np.testing.assert_allclose(blind, [0.109, 0.065], atol=0.006)


def by_hand(**changes):
    """Six evaluations of one seed: 1,000 clean and 100 noisy labels of 10 classes."""
    curves = {
        "setting": "noise=0.1",
        "seed": 0,
        "step": [0, 1, 2, 4, 8, 16],
        "clean": [0.13, 0.05, 0.50, 0.92, 0.89, 0.95],
        "noisy": [0.30, 0.10, 0.05, 0.04, 0.25, 0.95],
        "noisy_true": [0.10, 0.10, 0.50, 0.90, 0.70, 0.02],
        "test": [0.1, 0.1, 0.5, 0.9, 0.9, 0.9],
        "n_clean": 1000,
        "n_noisy": 100,
        "chance": 0.1,
        **changes,
    }
    frame = pd.DataFrame(curves)
    frame["blind"] = blind_accuracy(frame["noisy_true"].to_numpy(), n_classes=10)
    frame["memorised"] = frame["noisy"] - frame["blind"]
    return frame.assign(noisy_ahead=(frame["noisy"] > frame["clean"]).astype(float))


def test_events_are_those_that_hold_to_the_end():
    """Clean is above chance at step 0 but not at 1; noisy at step 0 but only from 8 on for good."""
    (row,) = noise_events(by_hand()).to_dict("records")
    assert {name: row[name] for name in EVENTS} == {
        "clean_learned": 2,
        "noisy_learned": 8,
        "noisy_memorised": 8,
        "clean_fitted": 16,
        "noisy_fitted": 16,
    }
    assert row["last"] == 16


def test_memorising_is_seen_before_it_shows_against_chance():
    """At step 4 the noisy labels are at 0.10, which is chance, but blind answers give 0.011."""
    noisy = [0.1, 0.1, 0.05, 0.10, 0.25, 0.95]
    (row,) = noise_events(by_hand(noisy=noisy)).to_dict("records")
    assert (row["noisy_memorised"], row["noisy_learned"]) == (4, 8)


def test_an_event_that_never_is_stays_empty():
    low = [0.1, 0.1, 0.05, 0.05, 0.05, 0.05]
    events = noise_events(pd.concat([by_hand(), by_hand(seed=1, noisy=low)]))
    assert events["noisy_fitted"].tolist() == [16, pd.NA]
    summary = event_summary(events).set_index("event")
    fitted = summary.loc["noisy_fitted"]
    assert (fitted["median"], fitted["earliest"], fitted["latest"]) == (16, 16, 16)
    assert (fitted["seeds"], fitted["n"]) == (1, 2)
    assert np.isnan(event_summary(events[1:]).set_index("event").loc["noisy_fitted", "median"])


def test_means_over_seeds_have_t_intervals_and_shares_exact_ones():
    clean = [np.array(by_hand()["clean"]) + shift for shift in (0, 0.01, 0.05)]
    curves = pd.concat([by_hand(seed=seed, clean=own) for seed, own in enumerate(clean)])
    course = noise_course(curves)
    assert set(course["course"]) == set(COURSES)
    at = course[(course["step"] == 2)].set_index("course")
    seen = np.array([own[2] for own in clean])
    low, high = stats.t.interval(0.95, 2, loc=seen.mean(), scale=stats.sem(seen))
    np.testing.assert_allclose(
        at.loc["clean", ["mean", "low", "high"]].tolist(), [seen.mean(), low, high]
    )
    ahead = course[(course["step"] == 1)].set_index("course").loc["noisy_ahead"]
    assert (ahead["mean"], ahead["n"]) == (pytest.approx(2 / 3), 3)
    exact = stats.binomtest(2, 3).proportion_ci(method="exact")
    assert (ahead["low"], ahead["high"]) == pytest.approx((exact.low, exact.high))
    wide = first_steps(course, 2)
    assert wide["step"].tolist() == [0, 1]
    assert wide.loc[1, "noisy"] == "10.0 (10.0 to 10.0)"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Four small runs: two seeds at two noises."""
    home = tmp_path_factory.mktemp("noisy")
    folder = str(write_idx_folder(home / "idx"))
    schedule = {"n_steps": 4, "dense_until": 0, "every": 1, "resume_every": 4}
    return [
        train(
            RunConfig(
                task=DigitsConfig(folder=folder, noise=noise),
                model={"hidden_widths": (8, 6)},
                optim={"lr": 0.03},
                schedule=schedule,
                seed=seed,
            ),
            out=home / f"{noise}-{seed}",
            progress=False,
        )
        for noise in (0.0, 0.5)
        for seed in (0, 1)
    ]


def test_the_curves_are_what_the_checkpoints_give(runs):
    curves = noise_curves(runs)
    assert set(curves["setting"]) == {"noise=0", "noise=0.5"}
    run = runs[2]
    own = curves[(curves["setting"] == "noise=0.5") & (curves["seed"] == 0)].set_index("step")
    assert (own["n_clean"] == 6).all()
    assert (own["n_noisy"] == 6).all()
    train_split = task_of(run.config.task, seed=0).split("train")
    for step, net in Trajectory.open(run.path):
        answers = answer_logits(net, train_split.images).argmax(1)
        noisy = train_split.noisy
        row = own.loc[step]
        for name, labels, which in (
            ("clean", train_split.labels, ~noisy),
            ("noisy", train_split.labels, noisy),
            ("noisy_true", train_split.true_labels, noisy),
        ):
            expected = (answers == labels)[which].double().mean().item()
            assert row[name] == pytest.approx(expected)
        assert row["blind"] == pytest.approx((1 - row["noisy_true"]) / 9)
        assert row["memorised"] == pytest.approx(row["noisy"] - row["blind"])
        assert row["noisy_ahead"] == (row["noisy"] > row["clean"])


def test_without_noise_there_is_nothing_to_say_of_noisy_labels(runs):
    curves = noise_curves(runs[:2])
    assert curves[["noisy", "blind", "memorised", "noisy_ahead"]].isna().all(axis=None)
    events = noise_events(curves)
    assert events[["noisy_learned", "noisy_memorised", "noisy_fitted"]].isna().all(axis=None)
    course = noise_course(curves).set_index("course")
    assert (course.loc["noisy", "n"] == 0).all()
    assert first_steps(noise_course(curves), 1).loc[0, "noisy"] == "–"


def test_the_setting_is_what_differs(runs, tmp_path):
    config = runs[2].config.replace(hidden_widths=(4, 4), n_steps=1, seed=5)
    wider = train(config, out=tmp_path / "other", progress=False)
    settings = noise_curves([runs[2], wider])["setting"].unique().tolist()
    assert settings == [
        "noise=0.5, hidden_widths=(4, 4), n_steps=1",
        "noise=0.5, hidden_widths=(8, 6), n_steps=4",
    ]


def test_settings_and_seeds_are_in_order(runs):
    curves = noise_curves(reversed(runs))
    pairs = curves[["setting", "seed"]].drop_duplicates().to_numpy().tolist()
    assert pairs == [["noise=0", 0], ["noise=0", 1], ["noise=0.5", 0], ["noise=0.5", 1]]


def test_runs_of_another_kind_are_refused(tmp_path):
    from interp_shortcuts import presets

    with pytest.raises(ConfigError, match="at least one run; got none"):
        noise_curves([])
    shortcut = train(presets.smoke(n_steps=1), out=tmp_path / "smoke", progress=False)
    with pytest.raises(ConfigError, match="wrong training labels; got one of rule max_parity"):
        noise_curves([shortcut])


def test_the_figure_draws_every_setting_with_its_intervals(runs):
    course = noise_course(noise_curves(runs))
    figure = noise_order_figure(course, chance=0.1)
    names = [trace.name for trace in figure.data if trace.showlegend]
    assert "clean labels" in names
    clean = [
        trace for trace in figure.data if trace.legendgroup == "clean" and trace.fill != "toself"
    ]
    assert [trace.yaxis for trace in clean] == ["y", "y2"]
    expected = course[(course["course"] == "clean") & (course["setting"] == "noise=0.5")]
    np.testing.assert_allclose(clean[1].y, expected["mean"])
    noisy = [trace for trace in figure.data if trace.legendgroup == "noisy"]
    assert {trace.yaxis for trace in noisy} == {"y2"}
    with pytest.raises(ConfigError, match="`course` must hold at least one run"):
        noise_order_figure(course[:0], chance=0.1)
