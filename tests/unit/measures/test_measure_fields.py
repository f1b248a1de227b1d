"""Parameters of the measures: features, splits, keys, and what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from interp_shortcuts.errors import ConfigError, MeasureError
from interp_shortcuts.measures.attention import Attention
from interp_shortcuts.measures.behaviour import Behaviour
from interp_shortcuts.measures.ov import OVSpearman
from interp_shortcuts.measures.ov_fraction import OVClassFraction, between_share
from interp_shortcuts.measures.qk import QKSpearman
from interp_shortcuts.models.build import build
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.tasks.features import Feature
from interp_shortcuts.tasks.task import ShortcutTask

TASK = ShortcutTask.named("max_parity", n_train=40, n_validation=20, n_adversarial=10)
SPEC = ModelSpec(d_model=8, d_mlp=8, d_vocab=11, d_vocab_out=2, n_ctx=5)
MODEL = build(SPEC, seed=0)


def test_unknown_feature_is_refused_at_once():
    for kind in (QKSpearman, OVSpearman, OVClassFraction):
        with pytest.raises(ConfigError, match="'magnitude'"):
            kind(feature="magnitud")


def test_features_of_one_name_are_refused():
    with pytest.raises(MeasureError, match="distinct names"):
        QKSpearman(feature=("parity", "parity"))


def test_a_list_is_as_good_as_a_tuple():
    measure = QKSpearman(feature=["parity", "magnitude"], splits=["train"])
    assert measure == QKSpearman(feature=("parity", "magnitude"), splits=("train",))
    assert QKSpearman(splits="train") == QKSpearman(splits=("train",))
    found = measure(MODEL, TASK)
    assert found.feature.values.tolist() == ["parity", "magnitude"]
    assert found.split.values.tolist() == ["train"]


def test_a_function_counts_by_its_values():
    def square(v):
        return v**2

    first, second = QKSpearman(feature=square).key, QKSpearman(feature=square).key
    assert first == second
    changed = Feature("square", lambda v: v**2 + (v == 3))
    assert QKSpearman(feature=changed).key != first
    assert QKSpearman(feature=Feature("square", lambda v: v * v)).key == first
    assert QKSpearman(feature="magnitude").key == QKSpearman().key != QKSpearman(splits=()).key


def test_a_table_of_the_users_own_vocabulary():
    table = np.array([0, 0, 1, 1, 0, 1, 0, 1, 0, 1])
    feature = Feature("table", lambda v: table[v])
    found = OVClassFraction(feature=feature)(MODEL, TASK)
    assert found.feature.values.tolist() == ["table"]
    other = Feature("table", lambda v: table[::-1][v])
    assert OVClassFraction(feature=feature).key != OVClassFraction(feature=other).key


def test_class_fraction_needs_classes():
    message = r"at least 2 and fewer than `n_integers` \(=10\) distinct values; 'magnitude' has 10"
    with pytest.raises(MeasureError, match=message):
        OVClassFraction(feature="magnitude")(MODEL, TASK)
    with pytest.raises(MeasureError, match="'one' has 1"):
        OVClassFraction(feature=Feature("one", np.ones_like))(MODEL, TASK)


def test_class_fraction_averages_to_its_chance_level():
    outputs = np.random.default_rng(0).standard_normal((5, 3))
    classes = (0, 0, 1, 1, 2)
    shares = [between_share(outputs, np.array(p)) for p in itertools.permutations(classes)]
    assert np.mean(shares) == pytest.approx((3 - 1) / (5 - 1), abs=1e-12)


def test_class_fraction_counts_the_classes_that_are_there():
    found = OVClassFraction(feature=("parity", "residue_3", "residue_7"))(MODEL, TASK)
    assert found.ov_class_fraction_chance.values == pytest.approx([1 / 9, 2 / 9, 6 / 9])


def test_more_than_two_classes_need_a_class_valued_feature():
    task = ShortcutTask.named("max_mod3", n_train=40, n_validation=20, n_adversarial=10)
    model = build(SPEC.model_copy(update={"d_vocab_out": 3}), seed=0)
    with pytest.raises(MeasureError, match=r"a class in 0\.\.2; 'magnitude' gives 3"):
        OVSpearman(feature="magnitude")(model, task)
    # a class that no integer has is constant, so the mean over classes is undefined
    found = OVSpearman(feature="parity")(model, task)
    assert np.isnan(found.ov_spearman.values).all()
    assert "at least one class" in found.ov_spearman.attrs["nan_means"]


def test_attention_examples_are_the_first_of_each_split():
    found = Attention()(MODEL, TASK)
    assert found.example_split.values.tolist() == ["validation"] * 4 + ["adversarial"] * 4
    validation = TASK.split("validation")
    assert found.example_tokens.values[:4].tolist() == validation.tokens[:4].tolist()
    assert found.example_label.values[:4].tolist() == validation.labels[:4].tolist()
    shortcut = TASK.split("adversarial").shortcut_labels[:4].tolist()
    assert found.example_shortcut.values[4:].tolist() == shortcut
    assert found.attention_example.sum("position").values == pytest.approx(1, abs=1e-6)
    few = Attention(splits=("train",), n_shown=0)(MODEL, TASK)
    assert few.sizes["example"] == 0
    with pytest.raises(MeasureError, match="at least one split"):
        Attention(splits=())
    with pytest.raises(MeasureError, match=r"`n_shown` \(=-1\)"):
        Attention(n_shown=-1)


@pytest.mark.parametrize("ratio", [1.0, 0.0])
def test_an_empty_split_is_nan_with_zero_examples(ratio):
    task = ShortcutTask.named(
        "max_parity", ratio=ratio, n_train=40, n_validation=20, n_adversarial=10
    )
    name = "anti" if ratio == 1.0 else "consistent"
    found = Behaviour()(MODEL, task)
    here = found.sel(split=name)
    assert int(here.n_examples) == 0
    for variable in set(found.data_vars) - {"n_examples"}:
        assert np.isnan(here[variable].values).all(), variable
    for measure in (QKSpearman(splits=(name,)), Attention(splits=(name,))):
        data = measure(MODEL, task)
        for variable in ("qk_spearman_activation", "attention_to_max", "attention_entropy"):
            if variable in data:
                assert np.isnan(data[variable].values).all()


def test_behaviour_of_chosen_splits_in_the_order_given():
    found = Behaviour(splits=("adversarial", "train"))(MODEL, TASK)
    assert found.split.values.tolist() == ["adversarial", "train"]
    whole = Behaviour()(MODEL, TASK)
    assert float(found.loss.sel(split="train")) == float(whole.loss.sel(split="train"))
