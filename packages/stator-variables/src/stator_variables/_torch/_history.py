"""What autograd knows of a tensor, asked so that it stays as it is."""

import torch

_requires_grad = torch._C.TensorBase.requires_grad_


def is_behind(tensor: torch.Tensor) -> bool:
    """Whether it is a view, and its base was written to since with gradients. Autograd gives such a view its history
    when that is asked for (`grad_fn`, `is_leaf`), and refuses to write to it before (`check_inplace` of
    `torch/csrc/autograd/VariableTypeUtils.h`).

    The one question that leaves it as it is: tensors with a history refuse to do without gradients.
    """
    if not (tensor.requires_grad and tensor._is_view()) or tensor._base is None or tensor._base.grad_fn is None:
        return False
    try:
        _requires_grad(tensor, False)
    except RuntimeError:
        return False
    return True
