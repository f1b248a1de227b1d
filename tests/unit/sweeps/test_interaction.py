"""The interaction: values derived by hand, all permutations counted out, and its error rate."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import binom
from synthetic_sweep import PAPER_LIKE, counts_table, synthetic_sweep

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.sweeps.interaction import find_interaction, interactions, permutation_p_value

CORNERS = ((1, 0.5), (1, 0.9), (2, 0.5), (2, 0.9))


def corners(*counts: tuple[int, int]):
    return counts_table(dict(zip(CORNERS, counts, strict=True)))


def test_the_difference_is_the_second_change_minus_the_first():
    found = find_interaction(corners((3, 10), (0, 10), (0, 10), (8, 10)), n_resamples=500)
    assert found.differences == pytest.approx((-0.3, 0.8))
    assert found.difference == pytest.approx(1.1)
    assert [(c.between, c.effect, c.generalised, c.n) for c in found.cells] == [
        (1, 0.5, 3, 10),
        (1, 0.9, 0, 10),
        (2, 0.5, 0, 10),
        (2, 0.9, 8, 10),
    ]


def test_the_p_value_of_one_run_in_each_cell_is_known():
    # one layer: the one success is at 0.5; two layers: at 0.9. Of the four equally likely ways to
    # hand out the labels two give a difference of +2 or -2, two give 0
    found = find_interaction(corners((1, 1), (0, 1), (0, 1), (1, 1)), n_resamples=10)
    assert found.difference == 2
    assert found.p_value == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("counts", "n"),
    [([[1, 0], [0, 3]], [[3, 2], [2, 3]]), ([[2, 1], [1, 2]], [[3, 3], [2, 3]])],
)
def test_the_p_value_is_that_of_listing_every_permutation(counts, n):
    counts, n = np.array(counts), np.array(n)

    def differences(row: int) -> list[float]:
        """The change of the rate in every assignment of labels to the runs of one depth."""
        total = int(n[row].sum())
        outcomes = np.arange(total) < counts[row].sum()
        found = []
        for high in combinations(range(total), int(n[row, 1])):
            mask = np.isin(np.arange(total), high)
            found.append(outcomes[mask].mean() - outcomes[~mask].mean())
        return found

    rates = counts / n
    observed = (rates[1, 1] - rates[1, 0]) - (rates[0, 1] - rates[0, 0])
    every = [b - a for a, b in product(differences(0), differences(1))]
    expected = np.mean([abs(value) >= abs(observed) - 1e-9 for value in every])
    assert permutation_p_value(counts, n) == pytest.approx(expected)


def test_the_error_rate_stays_below_five_percent_when_there_is_no_interaction():
    """Exact, over every table that five runs a cell can give, not by simulation."""
    n = np.full((2, 2), 5)
    rejects = np.zeros((6,) * 4, dtype=bool)
    for index in np.ndindex(*rejects.shape):
        rejects[index] = permutation_p_value(np.reshape(index, (2, 2)), n) <= 0.05
    assert rejects.any()

    def size(*rates: float) -> float:
        weights = [binom.pmf(np.arange(6), 5, rate) for rate in rates]
        return float(np.einsum("abcd,a,b,c,d->", rejects, *weights))

    sizes = [
        size(p, p + change, q, q + change)
        for p, q, change in product(
            np.linspace(0, 1, 11), np.linspace(0, 1, 11), (0, 0.2, 0.5, 0.8)
        )
        if max(p, q) + change <= 1
    ]
    assert max(sizes) <= 0.05
    assert size(0.33, 0.0, 0.0, 0.77) > 0.75  # and it sees the paper's rates


def test_simulated_runs_of_equal_effect_are_rarely_called_an_interaction():
    stream = np.random.default_rng(7)
    tables = stream.binomial(10, np.array([[0.2, 0.6], [0.3, 0.7]]), size=(400, 2, 2))
    n = np.full((2, 2), 10)
    assert np.mean([permutation_p_value(table, n) <= 0.05 for table in tables]) <= 0.05


def test_the_interval_keeps_its_width_where_the_bootstrap_has_none():
    found = find_interaction(corners((0, 10), (0, 10), (0, 10), (10, 10)), n_resamples=50)
    assert (found.bootstrap_low, found.bootstrap_high) == (1, 1)
    one = 1 - 0.025 ** (1 / 10)  # how far the exact interval of 0 of 10, or 10 of 10, reaches
    # three rates can move so as to make the difference smaller, one so as to make it larger
    assert found.difference - found.low == pytest.approx(np.sqrt(3) * one)
    assert found.high - found.difference == pytest.approx(one)


def test_the_bootstrap_draws_whole_seeds():
    # each seed does the same in both cells of two layers, so that resampling seeds cannot move
    # their difference; drawing runs one by one would
    found = find_interaction(corners((0, 8), (0, 8), (4, 8), (4, 8)), n_resamples=200)
    assert (found.bootstrap_low, found.bootstrap_high) == (0, 0)
    apart = find_interaction(corners((0, 8), (0, 8), (0, 8), (4, 8)), n_resamples=4000)
    ends = binom.ppf([0.025, 0.975], 8, 0.5) / 8  # the share of four of eight seeds, redrawn
    assert (apart.bootstrap_low, apart.bootstrap_high) == pytest.approx(ends)


def test_the_same_seed_gives_the_same_numbers():
    table = corners((3, 10), (0, 10), (2, 10), (8, 10))
    assert find_interaction(table, n_resamples=200) == find_interaction(table, n_resamples=200)
    other = find_interaction(table, n_resamples=200, seed=1)
    assert other.p_value == find_interaction(table, n_resamples=200).p_value


def test_runs_that_do_not_count_are_said_and_in_no_number():
    found = find_interaction(synthetic_sweep(PAPER_LIKE), n_resamples=200)
    assert [(c.generalised, c.n) for c in found.cells] == [(3, 10), (0, 9), (0, 10), (7, 9)]
    assert found.not_counted == {"failed": 1, "diverged": 0, "unfinished": 1, "unmeasured": 0}
    assert "Of these runs 2 are in no number: 1 failed, 1 unfinished." in found.sentence
    assert "+0.78 with n_layers 2 (0 of 10 to 7 of 9)" in found.sentence
    assert "−0.30 with n_layers 1 (3 of 10 to 0 of 9)" in found.sentence
    assert "depends on n_layers and goes in opposite directions" in found.sentence


def test_no_effect_is_said_without_claiming_that_there_is_none():
    found = find_interaction(corners((3, 10), (4, 10), (3, 10), (4, 10)), n_resamples=50)
    assert found.p_value == pytest.approx(1.0)
    assert "The runs do not show that the effect depends on n_layers." in found.sentence


def test_an_empty_cell_gives_the_reason_in_place_of_numbers():
    table = synthetic_sweep(
        [({"n_layers": n, "ratio": r}, ["pending" if n == 2 else "shortcut"]) for n, r in CORNERS]
    )
    found = find_interaction(table)
    assert np.isnan(found.p_value)
    assert found.reason == (
        "no run with n_layers=2, ratio=0.5 and none with n_layers=2, ratio=0.9 has ended"
    )
    assert "cannot be told yet: no run with" in found.sentence


def test_the_balanced_ratio_is_compared_with_the_largest():
    cells = [
        ({"n_layers": n, "ratio": r}, ["generalised" if n == 2 and r > 0.5 else "shortcut"])
        for n in (1, 2)
        for r in (0.1, 0.5, 0.7, 0.9)
    ]
    (found,) = interactions(synthetic_sweep(cells), n_resamples=10)
    assert [(cell.between, cell.effect) for cell in found.cells] == list(CORNERS)
    assert found.difference == 1


def test_other_settings_that_vary_are_refused_or_taken_one_by_one():
    cells = [
        ({"n_layers": n, "ratio": r, "weight_decay": w}, ["shortcut", "shortcut"])
        for w in (0.1, 0.4)
        for n, r in CORNERS
    ]
    table = synthetic_sweep(cells)
    with pytest.raises(ConfigError, match=r"these differ in weight_decay too"):
        find_interaction(table)
    assert [one.setting for one in interactions(table, n_resamples=10)] == [
        "weight_decay=0.1",
        "weight_decay=0.4",
    ]
    with pytest.raises(
        ConfigError, match=r"`n_layers` must have two levels in the table; it has 2"
    ):
        find_interaction(table[table["n_layers"] == 2])
    assert interactions(table[table["n_layers"] == 2], n_resamples=10) == ()
    sentence = interactions(table, n_resamples=10)[1].sentence
    assert sentence.startswith("With weight_decay=0.4, going from ratio 0.5 to 0.9 changed")
