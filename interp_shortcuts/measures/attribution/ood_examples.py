"""Which out-of-distribution sequences a measure asks: their length, and fresh samples of it.

Every sample has a named stream of its own, so that all checkpoints, and all measures with the same
seed, are asked about the same sequences. How a model answers them is left to the measures.
"""

from __future__ import annotations

from typing import NamedTuple

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.measures.attribution.ablated_scores import ablated_scores
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.streams import torch_stream
from interp_shortcuts.tasks.ood_length import OOD_RANGE, choose_ood_length
from interp_shortcuts.tasks.target_split import TargetSplit
from interp_shortcuts.tasks.target_task import TargetTask, split_name

NO_SPLIT = "none"
"""In the place of a split's name: no length qualified, and nothing is measured."""


class ChosenSplit(NamedTuple):
    """The split that a model is asked about.

    Attributes:
        name: `length_<n>`, or `NO_SPLIT`.
        reason: Why it is `NO_SPLIT`; else empty.
    """

    name: str
    reason: str = ""


def ood_split(observation: Observation) -> ChosenSplit:
    """The paper's rule: the first held-out length whose exact match is in [0.2, 0.75].

    The exact match is that of the model itself on the task's split of the length.
    """
    return observation.shared("ood split", lambda: _ood_split(observation))


def _ood_split(observation: Observation) -> ChosenSplit:
    task = observation.targeting
    found = {}
    for length in task.heldout_lengths:
        split = task.split(split_name(length))
        scores = ablated_scores(observation.model, split, [()], references=observation.references)
        found[length] = float(scores.exact_match.mean())
    length = choose_ood_length(found)
    if length is not None:
        return ChosenSplit(split_name(length))
    low, high = OOD_RANGE
    seen = ", ".join(f"{split_name(n)}: {value:.2f}" for n, value in found.items())
    return ChosenSplit(
        NO_SPLIT,
        f"no held-out length has an exact match in [{low:g}, {high:g}], so the model is excluded "
        f"({seen or 'no length is held out'})",
    )


def length_of(task: TargetTask, split: str) -> int:
    """The length of the sequences of a split.

    Raises:
        MeasureError: If the task has no such split; the message lists what can be named.
    """
    lengths = {split_name(n): n for n in (*task.train_lengths, *task.heldout_lengths)}
    if split not in lengths:
        raise MeasureError(
            f"`split` must be {', '.join(map(repr, lengths))}, or None for the held-out length "
            f"that the model itself decides on; got {split!r}."
        )
    return lengths[split]


def fresh_examples(
    observation: Observation, split: str, sample: str, *, n: int, seed: int
) -> TargetSplit:
    """Fresh sequences of a split's length, always the same for the same arguments.

    Args:
        observation: The model and the task; what is drawn is kept there.
        split: The split whose length they have.
        sample: What they are for; names the stream `("attribution", split, sample)`.
        n: How many.
        seed: Seed of the stream.
    """

    def draw() -> TargetSplit:
        task = observation.targeting
        stream = torch_stream(seed, "attribution", split, sample)
        return task.batch(n, stream, length_of(task, split))

    return observation.shared(("fresh examples", split, sample, n, seed), draw)


def fresh_batches(
    observation: Observation, split: str, *, n_batches: int, batch_size: int, seed: int
) -> tuple[TargetSplit, ...]:
    """Batches of fresh sequences, one after the other from one stream, `"batches"`."""

    def draw() -> tuple[TargetSplit, ...]:
        task = observation.targeting
        stream = torch_stream(seed, "attribution", split, "batches")
        length = length_of(task, split)
        return tuple(task.batch(batch_size, stream, length) for _ in range(n_batches))

    return observation.shared(("fresh batches", split, n_batches, batch_size, seed), draw)
