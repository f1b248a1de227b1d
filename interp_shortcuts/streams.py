"""Named random streams: every draw in the package comes from (seed, name), never from global state.

Two streams with different names are independent, and adding a new stream leaves the others as
they were, so that a seed keeps its meaning when the package grows.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import torch


def derive_seed(seed: int, *names: str) -> int:
    """A 63-bit seed that depends on `seed` and on the path of names.

    Args:
        seed: The seed of the run.
        names: The stream's path, e.g. `"init", "blocks.0.attn.W_Q"`.

    Returns:
        An integer in [0, 2**63).
    """
    text = "\x1f".join([str(int(seed)), *names])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def numpy_stream(seed: int, *names: str) -> np.random.Generator:
    """A NumPy generator for the stream `(seed, *names)`."""
    import numpy as np

    return np.random.Generator(np.random.PCG64(derive_seed(seed, *names)))


def torch_stream(seed: int, *names: str) -> torch.Generator:
    """A CPU torch generator for the stream `(seed, *names)`; the global one is not touched."""
    import torch

    return torch.Generator(device="cpu").manual_seed(derive_seed(seed, *names))
