"""Attribution of a model's components, their causal importance, and the gap between the two."""
