"""NumPy arrays and scalars, as torch's NumPy layer defines them where traced and otherwise as NumPy."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
import torch

from integration_tests.behaviours import program

TABLE = np.arange(6.0).reshape(2, 3)
SCALE = np.float64(2.5)


@program(breaks="builtin")
def arrays_from_outside_are_read(x, n, box):
    return TABLE.sum(), TABLE.shape, TABLE[0, 1], TABLE.dtype, (TABLE * n).tolist(), x + float(TABLE[1, 2])


@program(breaks="builtin")
def arrays_are_made_and_computed(x, n, box):
    a = np.linspace(0, 1, 4)
    b = np.ones((2, 2)) * n
    return a, b @ b, np.concatenate([a, a]), np.maximum(a, 0.5), a.mean(), a.reshape(2, 2).T, x + 1


@program(breaks="builtin")
def tensors_become_arrays_and_return(x, n, box):
    a = x.detach().numpy()
    b = torch.from_numpy(np.cos(a) * n)
    return b + 1, a.shape, torch.as_tensor(a).sum(), isinstance(a, np.ndarray)


@program(breaks="builtin")
def arrays_are_written(x, n, box):
    a = np.zeros(4)
    a[1:3] = n
    a += 1
    box.tensor.numpy()[0, 0] = 7
    return a, box.tensor * 2, a[a > 1]


@program(breaks="construction")
def scalars_keep_their_type(x, n, box):
    s = np.float32(n) / 2
    return (
        type(s),
        s + 1,
        SCALE * n,
        type(SCALE * 2),
        np.int64(n) // 2,
        x * float(SCALE),
        np.bool_(True),
        int(np.int8(n)),
        isinstance(SCALE, float),
        round(float(s), 2),
    )


@program(breaks="builtin")
def numpy_random_has_the_same_stream(x, n, box):
    np.random.seed(n)
    a = np.random.rand(2)
    generator = np.random.default_rng(n)
    return a, np.random.randint(0, 10, 3), generator.normal(size=2), np.random.permutation(4), x + 1


@program(breaks="construction")
def dtypes_and_constants(x, n, box):
    return (
        np.pi * n,
        np.float32,
        np.dtype("int8").itemsize,
        np.finfo(np.float32).eps,
        np.iinfo(np.int16).max,
        np.inf > n,
        np.newaxis is None,
        x + np.e,
    )


@program(breaks="builtin")
def arrays_in_conditions_and_loops(x, n, box):
    total = 0.0
    for row in TABLE:
        total += row[0]
    if (TABLE > n).any():
        x = x + 1
    return x, total, len(TABLE), n in TABLE, bool(np.array([n]) == n)


@program(breaks="builtin")
def numpy_functions_on_numbers_and_lists(x, n, box):
    return (
        np.sqrt(n * n),
        np.mean(box.items),
        np.prod([1, n]),
        np.argmax([1, n, 0]),
        np.clip(n, 0, 3),
        np.arange(n),
        np.array(box.items).cumsum(),
        x * np.sqrt(4.0),
    )
