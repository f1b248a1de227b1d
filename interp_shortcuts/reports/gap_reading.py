"""Words of the pages on attribution and causal importance: definitions, and how to read them."""

from __future__ import annotations

GAP_DEFINITIONS = (
    (
        "Attribution",
        "What a gradient says of a component, on examples of the held-out length. Gradient norm: "
        "the Frobenius norm of the gradient of its weights over the square root of their number. "
        "Weight × gradient, activation × gradient (towards the mean activation) and integrated "
        "gradients are defined below.",
    ),
    (
        "Causal importance",
        "What taking the component away costs on the same examples: exact match without minus with "
        "the ablation, paired. A head is ablated at z, before W_O; an MLP at what it adds to the "
        "residual stream. Below 0, the component stood in the way. Shapley values share the cost "
        "among components that can stand in for each other.",
    ),
    (
        "Rank and gap",
        "Components are ranked by each of the two; 1 is the least, tied components share the mean "
        "of their ranks. Gap = rank by attribution − rank by importance.",
    ),
    (
        "Hero, bloat",
        "Hidden hero: gap of at most −t ranks, it matters more than its attribution says. Gradient "
        "bloat: at least t, it matters less. Aligned: between the two. t is 6 unless said "
        "otherwise (arXiv 2602.01442). Many components without any measurable importance share a "
        "middle rank: with few examples, look at the intervals before believing a role.",
    ),
    (
        "rho",
        "Spearman's rank correlation over the components, from −1 to 1. Undefined where one of the "
        "two is the same for all components: nothing is ranked then.",
    ),
    (
        "Standing apart",
        "The first step from which at least one hero and one bloat of the end of training keep "
        "their final role at every later step. Undefined where one of the two kinds is missing at "
        "the end.",
    ),
    (
        "Joint drop",
        "What a whole set costs when it is ablated at once, beside the sum of what its members "
        "cost one by one. A factor above 1: the members stand in for each other. Infinite where "
        "the sum is 0 and the joint drop is not; undefined where both are 0 or the set is empty.",
    ),
    (
        "Pruning",
        "The k components of a kind with the largest gap are mean-ablated at once, beside k "
        "components drawn at random. A kind with fewer than k members has no point there.",
    ),
)

SEEDS_DEFINITIONS = (
    (
        "Intervals",
        "A seed is what is resampled. The 95% interval to read is the t interval, mean ∓ "
        "t(n − 1) · sd / √n. The percentile bootstrap over seeds is beside it: it knows of no "
        "values but those seen, and is too narrow for few seeds.",
    ),
    (
        "Excluded runs",
        "A run counts only if its exact match at some held-out length lies from 0.20 to 0.75: "
        "where the model always or never succeeds, no ablation says anything. Excluded runs are "
        "listed with the reason and are in no number. Runs whose ranks are undefined are counted "
        "apart.",
    ),
    (
        "Roles against chance",
        "In each shuffle the importance ranks are permuted among all components within each seed. "
        "p: share of shuffles in which this component (layer) has the role at least as often. p "
        "for any: share in which any component (layer) has it as often; it is the one to read "
        "where one looks for the most frequent. A component whose attribution always is the "
        "largest is a bloat in most shuffles too; the tick shows how often.",
    ),
    (
        "Closest method",
        "The method with the largest mean rho against a reference. Behind: mean over seeds of the "
        "difference in rho to it, paired within seeds, with its t interval; where that reaches 0, "
        "the two cannot be told apart. It is not corrected for having chosen the largest.",
    ),
    (
        "rho over steps",
        "Seeds stop at different steps. At each step the median is over the seeds that were "
        "measured there and define rho; n is in the hover.",
    ),
)
