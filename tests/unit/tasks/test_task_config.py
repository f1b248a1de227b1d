"""The limits on a task's sizes, as a config says them."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from interp_shortcuts.tasks.config import TaskConfig


def test_every_field_has_a_help_text():
    for name, field in TaskConfig.model_fields.items():
        assert field.description, name
        assert field.description.endswith("."), name


def test_json_round_trip():
    config = TaskConfig(rule="first_mod3", ratio=1, data_seed=3)
    assert TaskConfig.model_validate_json(config.model_dump_json()) == config
    assert isinstance(config.ratio, float)


def test_a_mistyped_field_is_an_error():
    with pytest.raises(ValidationError, match="n_trian"):
        TaskConfig(n_trian=3)  # pyright: ignore[reportCallIssue]


def test_it_cannot_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        TaskConfig().ratio = 0.5  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ratio", -0.1),
        ("ratio", 1.1),
        ("ratio", float("nan")),
        ("ratio", float("inf")),
        ("length", 0),
        ("length", 1025),
        ("n_integers", 1),
        ("n_integers", 2**31),
        ("n_train", 0),
        ("n_train", 2.5),
        ("n_validation", -1),
        ("n_adversarial", -1),
        ("n_classes", 1),
        ("rule", ""),
    ],
)
def test_limits(name, value):
    with pytest.raises(ValidationError, match=f"(?s)TaskConfig\n{name}\n.*input_value="):
        TaskConfig(**{name: value})
