"""The two groups of training examples: those where shortcut and rule agree, and the others."""

from __future__ import annotations

GROUPS = ("consistent", "anti")
"""Names of the splits that train falls into, and labels of the dim `group`."""
EMPTY = "the group has no example"
