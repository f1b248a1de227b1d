"""Words for a reader who was not there: what outcomes mean and how to read each panel."""

from __future__ import annotations

OUTCOME_MEANINGS = {
    "never learned": "Neither the shortcut nor the rule was learned.",
    "memorised": "The training examples were learned by heart; neither the shortcut nor the rule "
    "was.",
    "shortcut": "The shortcut was learned and kept; the rule was not learned.",
    "partial": "Adversarial accuracy ended above chance, but never reached the level that counts "
    "as generalised.",
    "generalised": "The shortcut was learned first, then the rule took over and stayed.",
    "transient": "The rule took over, and was lost again before the end.",
    "direct": "The rule was learned with no shortcut phase before it.",
    "undetermined": "Validation or adversarial accuracy was not measured, so the outcome cannot be "
    "told.",
}

SPLIT_MEANINGS = {
    "train": "what the network is trained on",
    "consistent": "training examples whose shortcut label is right",
    "anti": "training examples whose shortcut label is wrong",
    "validation": "held out; the shortcut is always right",
    "adversarial": "held out; the shortcut is always wrong",
}

TIMELINE_READING = (
    (
        "Events and shading",
        "Diamonds date what happened to behaviour. Blue: the shortcut is learned and answers "
        "alone. Yellow: the hand-over, from the onset of phase 2 until the rule is complete. "
        "Rings on the lines below mark where a component stands half way between its phase-1 and "
        "its final level.",
    ),
    (
        "Accuracy by split",
        "Validation examples can be answered by the shortcut or by the rule; adversarial examples "
        "only by the rule. High validation with low adversarial accuracy means a shortcut. Bands "
        "are 95% intervals over the examples.",
    ),
    (
        "Loss by group",
        "Saturation is where the loss on consistent examples has almost vanished: from then on "
        "the anti examples carry most of what is left to learn.",
    ),
    (
        "QK Spearman",
        "Where a head looks. +1: its attention score rises with the feature of the token, so it "
        "attends to the largest; 0: no order; -1: to the smallest. Solid: read from the weights "
        "(exact in layer 0, the direct path from the embeddings in deeper layers). Dashed: "
        "measured on examples.",
    ),
    (
        "OV class fraction",
        "What a head writes. The share of the variance of its output, over integers, that "
        "separates the classes, before the unembedding: it also sees what only a later layer "
        "reads. The dotted line is the share expected by chance.",
    ),
    (
        "OV Spearman",
        "What a head writes to the logits directly, as a rank correlation with the class. Ties cap "
        "it below 1; the dotted line is that ceiling. A head at its ceiling has learned all that "
        "the number can show.",
    ),
    (
        "Attention from '='",
        "How much of a head's attention goes to the position(s) of the maximum (and, for "
        "first-element tasks, to position 0), as a mean over examples.",
    ),
    (
        "Transfers",
        "A component's activation is taken from another example and put in. Rule transfer: the "
        "source has another true label and the same shortcut label; the share of predictions that "
        "move to its true label. Shortcut transfer: the other way round. Dashed: disruption, where "
        "both labels are the same and nothing should move. All heads together are the most that "
        "heads can carry. Sets that are greyed out in the legend appear on a click.",
    ),
    (
        "Gradients",
        "How much larger the gradient of the anti examples is than that of the consistent ones, "
        "and the cosine between them. The dotted levels are what arithmetic gives wherever "
        "training stands still; see the section on gradients.",
    ),
)

CARRIER_READING = (
    (
        "Maps",
        "A row is a head, an MLP or a set of them, a column a step at which it was patched. Green "
        "is the rule, brown the shortcut, violet disruption. A row that is dark in a transfer and "
        "as dark in disruption says nothing: patching one of two heads that compute together mixes "
        "two sequences, and moves predictions whatever the head carries.",
    ),
    (
        "Ablation",
        "What is lost on the same examples when a component's output is replaced by its mean over "
        "the training examples. On adversarial examples only the rule answers; below 0, the "
        "component stood in the rule's way. A component can be needed without carrying anything "
        "by itself.",
    ),
    (
        "Residual stream",
        "The same two transfers with the residual stream patched at one position between two "
        "layers: where the answer lies on its way to '='. Disruption at each place is in "
        "the data as residual_disruption.",
    ),
)

GRADIENT_READING = (
    (
        "What arithmetic gives",
        "Training lowers the mixed loss r L_c + (1 − r) L_a, with r the share of consistent "
        "examples. At any stationary point of it, weight decay aside, the two parts cancel: "
        "r g_c = −(1 − r) g_a. So the ratio A = |g_a| / |g_c| is r / (1 − r) and the cosine is −1, "
        "whatever the network computes. At r = 0.9 a ratio of 9 is no evidence of a mechanism.",
    ),
    (
        "Excess",
        "The ratio over that floor, A (1 − r) / r: how large the anti part of the mixed gradient "
        "is against the consistent part. 1 is what arithmetic gives where the two cancel; above 1 "
        "the anti part is the larger, below 1 the consistent part.",
    ),
    (
        "Cosine",
        "−1: the groups ask for opposite changes; near 0: for unrelated ones; above 0: one change "
        "helps both.",
    ),
    (
        "Share of the step",
        "The projection of each group's weighted gradient on the total. The two sum to 1. Where "
        "the parts nearly cancel, the shares are large, of opposite sign, and uncertain.",
    ),
)

CHECKPOINT_READING = (
    (
        "Attention on single examples",
        "A row is an example, a cell a position with its token; darker cells get more attention "
        "from '=', where the answer is read. The same examples are shown at every step.",
    ),
    (
        "QK score",
        "One point per integer: how strongly a head at '=' looks for it. A line rising to the "
        "right looks for large integers. Adding a constant to a line changes nothing.",
    ),
    (
        "OV logits",
        "One point per integer: what the head adds to the logits when it attends to that integer. "
        "A magnitude writer is a slope; a parity writer a zigzag; zero adds nothing.",
    ),
)
