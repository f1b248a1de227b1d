"""Words of the pages on modular arithmetic under label noise: definitions, and how to read them."""

from __future__ import annotations

MODULAR_DEFINITIONS = (
    (
        "Groups",
        "Clean: training examples whose label is right. Noisy: those whose label was replaced by a "
        "wrong one, scored against that label; noisy_true: the same examples against the right "
        "answer. Test labels are all right.",
    ),
    (
        "Networks G and R",
        "Of every neuron the three vectors u, v (of the two inputs) and w (of the answers) are "
        "taken apart by frequency along the residues. G keeps the dominant nonzero frequency of "
        "each vector, R what is left, and the bias of the answers. G joint keeps one frequency a "
        "neuron, that of the largest power over its three vectors (arXiv 2605.18022).",
    ),
    (
        "Activation",
        "“Trained” is the activation the network was trained with. The others are put in its place "
        "afterwards, without any training: quadratic is x², reverse ReLU is max(−x, 0).",
    ),
    (
        "For good",
        "The first measured step from which test accuracy stays at the threshold or above up to "
        "the last measured step. The event lies between that step and the one measured before. A "
        "network that never gets there has no step; the lead is then given as a least value.",
    ),
    (
        "Fitted first",
        "The group whose accuracy on the labels as given is at the level at the earlier measured "
        "step. Both at the same one: together; more steps would tell them apart.",
    ),
    (
        "Concentration",
        "Share of a vector’s squared length at its dominant frequency, from 0 to 1.",
    ),
    (
        "Phase error",
        "In the analytic solution the phases of u and v sum to that of w (subtraction: differ by "
        "it). The phase error is what is left, at the neuron’s joint frequency, from −π to π.",
    ),
    (
        "Neurons kept",
        "All other neurons are set to zero; the bias of the answers stays. IPR: inverse "
        "participation ratio of w’s spectrum. Strength: an upper bound of what the neuron adds to "
        "a logit. Random orders are the control.",
    ),
)

CELLS_DEFINITIONS = (
    (
        "Cell",
        "Runs that differ in nothing but the seed. Means are over the seeds of a cell, never over "
        "cells.",
    ),
    (
        "Intervals",
        "Of a mean: the t interval over seeds, mean ∓ t(n − 1) · sd / √n, which may leave the "
        "range of an accuracy; none for one seed. Of a count of seeds: the exact (Clopper-Pearson) "
        "interval. All are 95%.",
    ),
    (
        "Excluded runs",
        "Runs that failed, were not trained to their end or could not be measured are listed with "
        "the reason and are in no number.",
    ),
)
