"""Hidden progress: when a level is reached, what is fitted first, and what is said of it."""

from __future__ import annotations

import numpy as np
import pytest
from synthetic_modular import G_RELU, R_NOISY, RAW_TEST, group_sizes, modular_dataset
from synthetic_modular import modular_timeline as made
from synthetic_timeline import synthetic_dataset

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.timelines.hidden_progress import about_label_noise, find_hidden_progress
from interp_shortcuts.timelines.hidden_tables import (
    finals_table,
    partition_table,
    spectra_table,
    unembedding_table,
)
from interp_shortcuts.timelines.hidden_text import hidden_sentences
from interp_shortcuts.timelines.neuron_readings import (
    missing_for_neurons,
    neuron_states,
    sorted_spectra,
)
from interp_shortcuts.timelines.reached import first_at_least, held_from

STEPS = (0, 10, 20, 30)


@pytest.mark.parametrize(
    ("values", "first", "held"),
    [
        ([0.1, 0.9, 0.2, 0.9], (10, 0), (30, 20)),
        ([0.9, 0.9, 0.9, 0.9], (0, None), (0, None)),
        ([0.1, 0.9, np.nan, 0.9], (10, 0), (30, 20)),  # an undefined step is not above
    ],
)
def test_a_level_is_reached_first_and_for_good(values, first, held):
    one, two = first_at_least(STEPS, values, 0.5), held_from(STEPS, values, 0.5)
    assert (one.step, one.before) == first
    assert (two.step, two.before) == held
    assert two.at_last == (held[0] == 30)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([0.1, 0.2, 0.3, 0.3], "it never was 0.5: 0.30 at most"),
        ([0.1, 0.4999, 0.3, 0.3], "it never was 0.5: 0.4999 at most"),
        ([0.1, 0.9, 0.9, 0.25], "it was at 0.5 but not to the end: 0.25 at the last"),
        ([np.nan] * 4, "it is defined at no step"),
    ],
)
def test_a_level_that_is_not_kept_has_a_reason(values, reason):
    assert held_from(STEPS, values, 0.5).reason == reason


def test_network_g_is_read_with_each_activation_and_leads_the_network():
    found = find_hidden_progress(made())
    assert (found.hidden["quadratic"].step, found.hidden["quadratic"].before) == (500, 250)
    assert found.hidden["trained"].step is None
    assert found.full.step is None
    assert found.best == "quadratic"
    lead = found.lead("quadratic")
    assert (lead.steps, lead.at_least) == (None, 1500)  # the last step is 2,000
    assert "it never was 0.99: 0.02 at most" in lead.reason
    assert find_hidden_progress(made(), threshold=0.7).hidden["trained"].step == 2000
    ahead = find_hidden_progress(made(full_test=1.0)).lead("quadratic")
    assert ahead.steps == 100 - 500
    with pytest.raises(MeasureError, match=r"`acting` must be one of 'trained', .*; got 'gelu'"):
        found.lead("gelu")


@pytest.mark.parametrize(
    ("noisy_from", "clean_from", "which"), [(1, 2, "noisy"), (3, 1, "clean"), (2, 2, "together")]
)
def test_which_labels_are_fitted_first(noisy_from, clean_from, which):
    found = find_hidden_progress(made(noisy_from=noisy_from, clean_from=clean_from))
    assert found.fitted_first().which == which
    assert found.fitted_first(0.99).which == which
    assert found.fitted["noisy", 0.5].step == made().steps[noisy_from]


def test_what_cannot_be_said_has_a_reason():
    clean = find_hidden_progress(made(noise=0.0))
    assert clean.fitted_first().reason == "there are no noisy labels"
    bare = find_hidden_progress(made(filtered=False))
    assert bare.reason == "filtered_accuracy was not measured"
    assert bare.hidden == {}
    nothing = find_hidden_progress(modular_dataset()[["power"]])
    assert nothing.steps == ()
    assert nothing.full.reason == "group_accuracy was not measured"
    assert hidden_sentences(find_hidden_progress(modular_dataset(filtered=False)[["power"]]))[
        0
    ].startswith("Nothing can be said of this run")
    for name in ("threshold", "fitted_at"):
        with pytest.raises(MeasureError, match=rf"`{name}` must be in \(0, 1\]; got 0"):
            find_hidden_progress(made(), **{name: 0.0})


def test_final_accuracies_have_their_interval_and_n():
    table = finals_table(made().data).set_index(["network", "acting", "group"])
    assert len(table) == 5 * 4 * 5
    row = table.loc[("R", "trained", "noisy")]
    assert row["accuracy"] == pytest.approx(R_NOISY)
    assert row["high"] == pytest.approx(R_NOISY + 0.01)
    assert row["n"] == group_sizes()[2]
    assert table.loc[("G", "relu", "test"), "accuracy"] == pytest.approx(G_RELU)
    assert table.loc[("full", "trained", "test"), "accuracy"] == pytest.approx(RAW_TEST)
    bare = finals_table(made(filtered=False).data)
    assert set(bare["network"]) == {"full"}


def test_partitions_and_spectra_as_tables():
    data = made().data
    partition = partition_table(data)
    top = partition[(partition["keep"] == "top") & (partition["group"] == "test")]
    random = top[top["score"] == "random"]
    assert np.isfinite(random["low"]).all()
    assert top[top["score"] == "ipr"]["low"].isna().all()
    assert len(partition) == 3 * 2 * 5 * 5
    spectra = spectra_table(data).set_index(["quantity", "of"])
    known = data["concentration"].isel(step=-1).sel(vector="w").to_numpy()[1:]
    assert spectra.loc[("concentration", "w"), "mean"] == pytest.approx(known.mean())
    assert spectra.loc[("concentration", "w"), "n_undefined"] == 1
    signed = data["phase_error"].isel(step=-1).to_numpy()[1:]
    assert spectra.loc[("phase_error", ""), "mean"] == pytest.approx(np.abs(signed).mean())
    assert not len(unembedding_table(data))
    assert not len(partition_table(modular_dataset(partition=False)))


def test_neurons_are_counted_and_sorted_by_joint_frequency():
    data = made(width=33).data
    states = neuron_states(data)
    joint = states.joint[-1]
    assert states.counts[-1].sum() == np.isfinite(joint).sum() == 32
    assert all(states.counts[-1][int(k)] == (joint == k).sum() for k in set(joint[1:]))
    found = sorted_spectra(data)
    assert np.all(np.diff(found.joint[:-1]) >= 0)
    assert found.neurons[-1] == 0  # the one that has died
    assert np.isnan(found.share[:, -1]).all()
    assert np.allclose(found.share[:, :-1].sum(-1), 1.0, atol=1e-5)
    place = found.neurons.index(7)
    power = data["power"].isel(step=-1).sel(vector="v", neuron=7).to_numpy()
    assert np.allclose(found.share[1, place], power / power.sum(), atol=1e-5)
    assert missing_for_neurons(data.drop_vars("concentration")) == (
        "concentration was not measured"
    )


def test_the_sentences_have_the_numbers():
    data = made().data
    text = hidden_sentences(find_hidden_progress(data), spectra_table(data), partition_table(data))
    assert text[0] == (
        "Network G with the quadratic activation has a test accuracy of at least 0.99 from step "
        "500 (measured before it: step 250), at least 1,500 steps before the network itself."
    )
    assert text[1] == (
        "The network itself never reaches a test accuracy of 0.99 for good (0.02 at most)."
    )
    assert "50% of the noisy by step 100 and of the clean by step 250" in text[3]
    assert "Network R keeps 0.77 of the noisy labels and has a test accuracy of 0.02." in text[4]
    assert "0.29 by IPR (a share of 0.1)" in text[6]
    never = hidden_sentences(find_hidden_progress(made(hidden_from=None)))
    assert never[0].startswith("Network G with the activation of the training never reaches")


def test_a_run_under_label_noise_is_known_by_its_variables_or_its_task():
    data = modular_dataset()
    assert about_label_noise(data)
    assert about_label_noise(data[["power"]])  # by its task
    assert not about_label_noise(synthetic_dataset("generalised", n_steps=5))


def test_a_timeline_shows_itself():
    line = made()
    assert "Network G with the quadratic activation" in repr(line)
    assert line.figure(threshold=0.7).layout.shapes
