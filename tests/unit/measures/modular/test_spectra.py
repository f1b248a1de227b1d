"""Spectra: Parseval, pure cosines, both conventions of IPR, phases, and a slow reference."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest
import torch
from handwired_modular import spectra_of

from interp_shortcuts.errors import ConfigError, MeasureError
from interp_shortcuts.models.analytic import analytic_network
from interp_shortcuts.models.spectrum import (
    Spectrum,
    inverse_participation,
    neuron_strengths,
    wrapped,
)
from interp_shortcuts.models.two_layer import (
    build_two_layer,
    load_two_layer_weights,
    two_layer_weights,
)
from interp_shortcuts.models.two_layer_spec import TwoLayerSpec


def network(u, v, w, *, activation="relu", dtype=torch.float64):
    """Neurons with these vectors [neuron place]."""
    u, v, w = (torch.as_tensor(np.array(vector), dtype=dtype) for vector in (u, v, w))
    size = u.shape[1]
    net = build_two_layer(
        TwoLayerSpec(n_tokens=size, n_classes=size, width=len(u), activation=activation)
    ).to(dtype)
    load_two_layer_weights(net, {"U": u.T, "V": v.T, "W": w, "mu": torch.zeros(size)})
    return net


def cosine(n, k, phase, size=1.0):
    return size * np.cos(2 * np.pi * k * np.arange(n) / n + phase)


def random_network(n, width=4, seed=0):
    return network(*np.random.default_rng(seed).standard_normal((3, width, n)))


@pytest.mark.parametrize("n", [8, 9, 113])
def test_the_power_sums_to_the_squared_length(n):
    net = random_network(n)
    power = spectra_of(net).power.sum("frequency").values
    vectors = np.stack([net.U.T.detach(), net.V.T.detach(), net.W.detach()])
    np.testing.assert_allclose(power, (vectors**2).sum(-1), rtol=1e-6)


@pytest.mark.parametrize(("n", "k"), [(9, 1), (9, 4), (12, 5), (113, 56)])
def test_a_pure_cosine(n, k):
    net = network([cosine(n, k, 0.4, size=3)], [cosine(n, k, -2.0)], [cosine(n, k, 2.5, size=0.1)])
    spectra = spectra_of(net)
    assert spectra.dominant_frequency.values.tolist() == [[k], [k], [k]]
    assert spectra.joint_frequency.values.tolist() == [k]
    np.testing.assert_allclose(spectra.concentration, 1, atol=1e-6)
    np.testing.assert_allclose(spectra.phase.values[:, 0], [0.4, -2.0, 2.5], atol=1e-6)
    np.testing.assert_allclose(spectra.phase_error, 0.4 - 2.0 - 2.5 + 2 * np.pi, atol=1e-6)
    np.testing.assert_allclose(spectra.ipr.sel(convention="rfft"), 1.0, atol=1e-6)
    np.testing.assert_allclose(spectra.ipr.sel(convention="fft"), 0.5, atol=1e-6)


def test_ipr_of_known_mixtures():
    """m equal cosines: 1/m by rfft, 1/(2m) by fft. One residue alone: every |w^_k| is equal."""
    n = 11
    three = sum(cosine(n, k, k) for k in (1, 2, 5))
    spectra = spectra_of(network([three] * 2, [three] * 2, [three, np.eye(n)[4]]))
    np.testing.assert_allclose(spectra.ipr.sel(convention="rfft"), [1 / 3, 1 / 6], rtol=1e-6)
    np.testing.assert_allclose(spectra.ipr.sel(convention="fft"), [1 / 6, 1 / 11], rtol=1e-6)


def test_concentration_of_two_cosines():
    """Sizes 3 and 4 have powers 9 : 16; a constant counts in the length and is never dominant."""
    n = 13
    mixed = cosine(n, 2, 0.3, size=3) + cosine(n, 5, 1.0, size=4)
    spectra = spectra_of(network([mixed], [mixed + 100], [cosine(n, 2, 0.0, size=9)]))
    assert spectra.dominant_frequency.values[:, 0].tolist() == [5, 5, 2]
    np.testing.assert_allclose(
        spectra.concentration.values[:, 0],
        [16 / 25, 8 * n / ((25 / 2 + 100**2) * n), 1],
        rtol=1e-5,
    )
    assert spectra.joint_frequency.values.tolist() == [2]
    np.testing.assert_allclose(spectra.joint_concentration.values[0, 0], 9 / 25, rtol=1e-5)


@pytest.mark.parametrize("n", [6, 7])
def test_a_slow_reference(n):
    """The transform as a double loop, with the mirror images of each frequency added up."""
    net = random_network(n, width=3, seed=1)
    spectra = spectra_of(net)
    w = net.W.detach().numpy()
    for neuron in range(3):
        full = [
            sum(w[neuron, j] * cmath.exp(-2j * math.pi * k * j / n) for j in range(n))
            for k in range(n)
        ]
        power = [abs(value) ** 2 / n for value in full]
        folded = [sum(power[other] for other in {k, (n - k) % n}) for k in range(n // 2 + 1)]
        best = max(range(1, n // 2 + 1), key=lambda k: folded[k])
        row = spectra.sel(vector="w", neuron=neuron)
        np.testing.assert_allclose(row.power, folded, rtol=1e-5)
        assert int(row.dominant_frequency) == best
        np.testing.assert_allclose(row.concentration, folded[best] / sum(folded), rtol=1e-5)
        fourth = sum(abs(value) ** 4 for value in full) / sum(abs(v) ** 2 for v in full) ** 2
        np.testing.assert_allclose(row.ipr.sel(convention="fft"), fourth, rtol=1e-5)
        joint = int(row.joint_frequency)
        np.testing.assert_allclose(row.phase, cmath.phase(full[joint]), rtol=1e-4)


@pytest.mark.parametrize("arithmetic", ["add", "subtract", "multiply"])
def test_the_analytic_network_has_no_phase_error(arithmetic):
    spectra = spectra_of(analytic_network(13, width=32, arithmetic=arithmetic), arithmetic)
    assert np.abs(spectra.phase_error).max() < 1e-5
    np.testing.assert_allclose(spectra.ipr.sel(convention="rfft"), 1, atol=1e-6)


def test_the_circle_matters():
    """In the order of the residues a multiplication's cosines are spread over frequencies."""
    net = analytic_network(13, width=32, arithmetic="multiply")
    assert spectra_of(net, "multiply").concentration.min() > 0.999
    assert spectra_of(net, "add").concentration.mean() < 0.6
    subtracting = analytic_network(13, width=32, arithmetic="subtract")
    assert np.abs(spectra_of(subtracting, "add").phase_error).mean() > 0.5


@pytest.mark.parametrize(
    ("activation", "expected"),
    [("relu", 35), ("quadratic", 245), ("reverse_relu", 35), ("leaky_relu", 35), ("abs", 35)],
)
def test_strength_by_hand(activation, expected):
    """|w| = 5, |u| = 4, |v| = 3: 5 phi(7)."""
    net = network([[1, -4]], [[3, 2]], [[-5, 0]], activation=activation)
    np.testing.assert_allclose(neuron_strengths(net), expected)
    np.testing.assert_allclose(spectra_of(net).strength, expected)


def test_what_is_undefined_is_nan_and_says_why():
    n = 9
    zero, flat = np.zeros(n), np.full(n, 2.0)
    wave, other = cosine(n, 2, 0.5), cosine(n, 4, 0.5, size=0.1)
    net = network([zero, flat, wave], [zero, flat, wave], [zero, flat, other])
    spectra = spectra_of(net)
    assert np.isnan(spectra.ipr.sel(convention="rfft")).values.tolist() == [True, False, False]
    assert np.isnan(spectra.ipr.sel(convention="fft")).values.tolist() == [True, False, False]
    assert np.isnan(spectra.concentration.sel(vector="w")).values.tolist() == [True, False, False]
    assert np.isnan(spectra.dominant_frequency.sel(vector="u")).values.tolist() == [
        True,
        True,
        False,
    ]
    assert np.isnan(spectra.joint_frequency).values.tolist() == [True, True, False]
    assert np.isnan(spectra.phase.sel(vector="u")).values.tolist() == [True, True, False]
    assert np.isnan(spectra.phase_error).values.all()
    for name in ("ipr", "concentration", "dominant_frequency", "phase", "phase_error"):
        assert spectra[name].attrs["nan_means"] != "never NaN"


def test_every_variable_says_what_it_is():
    spectra = spectra_of(random_network(7))
    for variable in spectra.data_vars.values():
        assert set(variable.attrs) >= {"long_name", "units", "definition", "range", "nan_means"}
        assert variable.dtype == np.float32
    assert spectra.vector.values.tolist() == ["u", "v", "w"]
    assert spectra.convention.values.tolist() == ["rfft", "fft"]
    assert spectra.sizes == {"vector": 3, "neuron": 4, "frequency": 4, "convention": 2}


def test_both_vectors_of_a_tied_network_are_its_one_matrix():
    spec = TwoLayerSpec(n_tokens=11, n_classes=11, width=5, tied=True)
    tied = build_two_layer(spec, seed=0)
    weights = two_layer_weights(tied)
    apart = build_two_layer(spec.model_copy(update={"tied": False}))
    load_two_layer_weights(apart, {**weights, "V": weights["U"]})
    spectra = spectra_of(tied)
    assert spectra.identical(spectra_of(apart))
    for name in ("power", "dominant_frequency", "concentration", "phase"):
        assert (
            spectra[name]
            .sel(vector="u")
            .drop_vars("vector")
            .equals(spectra[name].sel(vector="v").drop_vars("vector"))
        )


def test_angles_are_wrapped():
    turns = torch.tensor([0.0, math.pi, -math.pi, 3 * math.pi, 7.0, -7.0], dtype=torch.float64)
    expected = [0.0, math.pi, math.pi, math.pi, 7 - 2 * math.pi, 2 * math.pi - 7]
    np.testing.assert_allclose(wrapped(turns), expected, atol=1e-12)


def test_tiny_coefficients_do_not_underflow():
    tiny = torch.fft.rfft(torch.from_numpy(cosine(9, 2, 0.0, size=1e-100)))
    assert inverse_participation(tiny).item() == pytest.approx(1)


def test_networks_without_a_circle_are_refused():
    unequal = build_two_layer(TwoLayerSpec(n_tokens=5, n_classes=4, width=2), seed=0)
    with pytest.raises(ConfigError, match=r"`n_tokens` \(=5\) must equal `n_classes` \(=4\)"):
        Spectrum.of(unequal, "add")
    with pytest.raises(ConfigError, match=r"`modulus` \(=8\) must be a prime"):
        Spectrum.of(random_network(8), "multiply")
    broken = random_network(7)
    with torch.no_grad():
        broken.U[0, 0] = torch.inf
    with pytest.raises(MeasureError, match="weights must be finite"):
        spectra_of(broken)
