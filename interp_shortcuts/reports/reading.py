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
        "Rings on the lines below mark where a head stands half way between its phase-1 and its "
        "final level.",
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
        "How much of a head's attention goes to the position(s) of the maximum (for first-element "
        "tasks also to position 0), as a mean over examples.",
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
