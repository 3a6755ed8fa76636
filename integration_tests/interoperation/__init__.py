"""Compiled functions in torch.compile, `torch.export`, `torch.jit` and the other tracers of
torch."""
