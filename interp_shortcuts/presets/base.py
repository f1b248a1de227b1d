"""What a preset is, and the list of them. The presets themselves have a module for each paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.runs.config import RunConfig


@dataclass(frozen=True)
class Preset:
    """A registered preset. Call it as the function that it wraps: `(seed=0, **overrides)`."""

    name: str
    """Also the config's `name`, and with dashes the name on the command line."""
    description: str
    """One line: what it shows."""
    cost: str
    """Time to train one seed with one thread, and whether that was measured or estimated."""
    make: Callable[..., RunConfig]

    @property
    def command(self) -> str:
        """The name on the command line, e.g. `max-parity-demo`."""
        return self.name.replace("_", "-")

    def __call__(self, seed: int = 0, **overrides: Any) -> RunConfig:
        """The config for one seed; see `configured` for the overrides."""
        return self.make(seed, **overrides)


def preset(name: str) -> Preset:
    """The registered preset of that name, written with underscores or dashes.

    Raises:
        ConfigError: If there is none; the message lists the choices.
    """
    try:
        return PRESETS[name.replace("-", "_")]
    except KeyError:
        raise ConfigError(
            f"`{name}` is no preset; choose from: {', '.join(sorted(PRESETS))}."
        ) from None


def configured(
    base: Mapping[str, Any],
    seed: int,
    overrides: Mapping[str, Any],
    *,
    start: RunConfig = RunConfig(),  # noqa: B008 - frozen
) -> RunConfig:
    """A config from flat field names, overrides winning over the preset's own choices.

    Args:
        base: The preset's fields, by flat name (`ratio`, `n_layers`, `lr`).
        seed: The run's seed.
        overrides: The caller's fields, by the same names.
        start: Which kind of task it is, and what `base` leaves as it is.

    Raises:
        ConfigError: If a name is no field (the message lists them all), or a value breaks a
            field's rule (the message names field, value and rule).
    """
    try:
        return start.replace(**{**base, "seed": seed, **overrides})
    except ValidationError as error:
        raise ConfigError("; ".join(_broken_rules(error))) from error


def _broken_rules(error: ValidationError) -> list[str]:
    """Pydantic's complaints as one sentence each: field, value, rule."""
    sentences = []
    for item in error.errors():
        message = item["msg"].removeprefix("Value error, ")
        if item["type"] == "value_error" or not item["loc"]:
            sentences.append(message)  # our own validators name field and value already
        else:
            rule = message.removeprefix("Input should be ").rstrip(".")
            sentences.append(f"`{item['loc'][-1]}` (={item['input']!r}) must be {rule}.")
    return sentences


PRESETS: dict[str, Preset] = {}
"""Every preset by name, in the order in which they are listed."""


def registered(
    description: str, *, cost: str
) -> Callable[[Callable[..., RunConfig]], Callable[..., RunConfig]]:
    """Lists a function as a preset of its name.

    Args:
        description: One line: what it shows.
        cost: Time to train one seed with one thread, and whether measured or estimated.
    """

    def register(make: Callable[..., RunConfig]) -> Callable[..., RunConfig]:
        PRESETS[make.__name__] = Preset(make.__name__, description, cost, make)
        return make

    return register
