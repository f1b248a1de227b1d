"""The thresholds from which events and outcomes are read.

None of the numbers is given in the paper except `generalised_level` (a run generalises if its
adversarial accuracy reaches 100% at any point, arXiv 2607.10116); all others are our choice. What
is done with them is in `events`, `circuit_events`, `carriers` and `phases`.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, model_validator


class PhaseRules(BaseModel):
    """Thresholds of the events on a timeline; accuracies are fractions in [0, 1].

    Accuracies and losses are stored as 32-bit floats, and thresholds are compared at that
    precision, so that a value equal to a threshold counts as reaching it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    validation_level: float = Field(
        default=0.95,
        gt=0,
        le=1,
        description="Validation accuracy from which the shortcut (or the rule) counts as learned.",
    )
    shortcut_fraction_of_chance: float = Field(
        default=1 / 3,
        gt=0,
        le=1,
        description="Adversarial accuracy of at most this fraction of chance (1 / classes) is "
        "shortcut level.",
    )
    saturation_loss: float = Field(
        default=0.05,
        gt=0,
        description="The loss on consistent examples, in nats, at which the shortcut has "
        "saturated.",
    )
    generalised_level: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description="Adversarial accuracy that counts as generalised when reached at any "
        "evaluation.",
    )
    lost_level: float = Field(
        default=0.95,
        gt=0,
        le=1,
        description="A generalised run whose adversarial accuracy ends below this has lost the "
        "rule.",
    )
    memorised_level: float = Field(
        default=0.99,
        gt=0,
        le=1,
        description="Training accuracy from which a run that learned neither the shortcut nor the "
        "rule has memorised.",
    )
    partial_margin: float = Field(
        default=0.1,
        ge=0,
        lt=1,
        description="How far above chance adversarial accuracy must end for a run without a dated "
        "onset to count as partial.",
    )
    hysteresis: int = Field(
        default=2,
        ge=1,
        description="Number of consecutive evaluations that must agree before an event is dated; "
        "levels at the end are means over as many.",
    )
    min_change: float = Field(
        default=0.1,
        gt=0,
        description="A circuit measure that moves by less than this between phase 1 and the end "
        "did not change.",
    )
    carrier_level: float = Field(
        default=0.5,
        gt=0,
        le=1,
        description="A component carries the rule (the shortcut) when its rule (shortcut) transfer "
        "exceeds its disruption by at least this.",
    )

    @model_validator(mode="after")
    def _lost_is_below_generalised(self) -> PhaseRules:
        if self.lost_level > self.generalised_level:
            raise ValueError(
                f"`lost_level` (={self.lost_level:g}) must be at most `generalised_level` "
                f"(={self.generalised_level:g}), or a run would be lost as it generalises."
            )
        return self
