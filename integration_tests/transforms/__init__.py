"""The transforms of `torch.func`, higher-order and custom operators."""
