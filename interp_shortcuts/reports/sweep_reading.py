"""Words of a sweep's page: what its quantities are, and how to read its pictures."""

from __future__ import annotations

SWEEP_DEFINITIONS = (
    (
        "Generalised",
        "Adversarial accuracy was 1.0 at one evaluation or more (arXiv 2607.10116). How many "
        "examples were asked stands in the table of runs.",
    ),
    (
        "Lasting, transient",
        "Of the runs that generalised, those that kept the rule to the end, and those that lost "
        "it again. They add up to the generalised ones.",
    ),
    (
        "Rates",
        "Fractions of the runs that were trained to their end and whose adversarial accuracy is "
        "known (n), with exact (Clopper-Pearson) 95% intervals. Runs that failed, diverged or have "
        "not ended are in no rate, and are counted beside it.",
    ),
    (
        "Interaction",
        "The difference of differences of rates: what the larger ratio changes with more layers, "
        "minus what it changes with fewer. Its 95% interval combines the exact intervals of the "
        "four rates. The p-value is exact: the labels of the ratio are permuted within each depth, "
        "and all permutations are summed over. The bootstrap draws seeds, a seed taking its runs "
        "in all four cells with it; where every rate is 0 or 1 it has no width, and says nothing.",
    ),
    (
        "Survival curves",
        "Kaplan-Meier: the share of runs in which the event has not come yet. Runs without the "
        "event are censored at their last evaluation, not dropped; for the onset, a run that "
        "learned the rule with no shortcut phase (direct) is censored where its rule was complete. "
        "The median is the first step at which the event has come in half of the runs.",
    ),
    (
        "Aligned timelines",
        "Each seed's curves are shifted so that its own onset is 0, then median and quartiles are "
        "taken over the seeds of one cell and one outcome. Heads of a layer have no identity over "
        "seeds: head 1 is the one with the largest QK Spearman (in size) at the onset.",
    ),
)
