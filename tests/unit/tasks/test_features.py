"""Features of an integer: known values, the choices, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.tasks.features import FEATURES, Feature, feature


@pytest.mark.parametrize(
    ("spec", "values", "n_values"),
    [
        ("magnitude", [0, 1, 2, 3, 4, 5, 6], 7),
        ("parity", [0, 1, 0, 1, 0, 1, 0], 2),
        ("residue_3", [0, 1, 2, 0, 1, 2, 0], 3),
        ("residue_100", [0, 1, 2, 3, 4, 5, 6], 7),
    ],
)
def test_values(spec, values, n_values):
    found = feature(spec)
    assert found.name == spec
    assert found.definition.startswith("f(v) = v")
    assert found.values(7).tolist() == values
    assert found.values(7).dtype == np.float64
    assert found.n_values(7) == n_values


def test_calling_a_feature_gives_it_for_any_shape():
    assert feature("parity")([[1, 2], [3, 4]]).tolist() == [[1, 0], [1, 0]]


def test_a_feature_is_one_object_per_name():
    assert feature("residue_5") == feature("residue_5")
    assert feature("parity") is FEATURES["parity"]
    assert feature(feature("parity")) is FEATURES["parity"]


def test_a_function_becomes_a_feature():
    def is_large(integers):
        return integers > 3

    found = feature(is_large)
    assert found.name == "is_large"
    assert found.values(6).tolist() == [0, 0, 0, 0, 1, 1]
    assert feature(lambda integers: -integers).name == "custom"


@pytest.mark.parametrize(
    "spec", ["oddness", "residue_1", "residue_0", "residue_03", "residue_", ""]
)
def test_unknown_names_list_the_choices(spec):
    with pytest.raises(ConfigError, match=r"'magnitude', 'parity', 'residue_k'.*got '" + spec):
        feature(spec)


def test_one_finite_number_for_each_integer():
    with pytest.raises(ConfigError, match=r"`total` got an array of shape \(5,\) and returned"):
        Feature("total", np.sum).values(5)
    with pytest.raises(ConfigError, match=r"dtype <U"):
        Feature("text", lambda integers: integers.astype(str)).values(5)
    with pytest.raises(ConfigError, match=r"must be finite: `hole` is nan at 2"):
        Feature("hole", lambda integers: np.where(integers == 2, np.nan, integers)).values(5)
