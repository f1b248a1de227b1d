"""The slow side of `tracking.py`: every default measure as a plain loop over TransformerLens.

What one would write without this package: `run_with_cache` for what is read, one `run_with_hooks`
for each component and kind of intervention, autograd for gradients, NumPy and SciPy for the rest,
all examples of a split in one batch. Splits, pairs and random draws are the package's, so that
both sides are asked the same; nothing of its measures or interventions is used.

For the two-class demo model alone: 2 layers, 2 heads, causal attention, no normalisation.
"""
