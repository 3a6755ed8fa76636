"""NumPy arrays and scalars, as torch's NumPy layer defines them where traced and otherwise as
NumPy."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
import torch

from integration_tests.corpora.behaviours import program

TABLE = np.arange(6.0).reshape(2, 3)
SCALE = np.float64(2.5)


@program(breaks="builtin")
def arrays_from_outside_are_read(x, n, box):
    return (
        TABLE.sum(),
        TABLE.shape,
        TABLE[0, 1],
        TABLE.dtype,
        (TABLE * n).tolist(),
        x + float(TABLE[1, 2]),
    )


@program
def arrays_are_made_and_computed(x, n, box):
    a = np.linspace(0, 1, 4)
    b = np.ones((2, 2)) * n
    return a, b @ b, np.concatenate([a, a]), np.maximum(a, 0.5), a.mean(), a.reshape(2, 2).T, x + 1


@program
def tensors_become_arrays_and_return(x, n, box):
    a = x.detach().numpy()
    b = torch.from_numpy(np.sqrt(np.abs(a)) * n)
    return b + 1, a.shape, torch.as_tensor(a).sum(), isinstance(a, np.ndarray)


@program(breaks="numpy")
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


@program
def numpy_random_has_the_same_stream(x, n, box):
    np.random.seed(n)
    a = np.random.rand(2)
    generator = np.random.default_rng(n)
    return a, np.random.randint(0, 10, 3), generator.normal(size=2), np.random.permutation(4), x + 1


@program
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


@program
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


RATE = np.float32(1.5)


@program
def numbers_of_numpy_scale_tensors(x, n, box):
    return (
        x * np.float32(2.0),
        np.float64(3) * x,
        np.pi * x,
        np.int64(n) * x,
        x - np.int8(n),
        np.float32(n) / 3,
    )


@program
def functions_of_numbers_give_numbers(x, n, box):
    sizes = (
        int(np.prod(x.shape)),
        np.prod(x.shape),
        np.ceil(n / 2) * x,
        np.mean((1, 2, n)),
        np.clip(n, 0, 3),
    )
    return (
        sizes,
        np.sqrt(2.0),
        np.log(n),
        np.sqrt(np.float32(n)),
        np.maximum(n, 3),
        np.exp(-0.5) * x,
    )


@program
def a_number_of_numpy_from_outside(x, n, box):
    return (
        x * RATE,
        RATE + 1,
        RATE,
        float(RATE),
        RATE.item(),
        np.float32(1) < RATE,
        isinstance(RATE, np.floating),
    )


@program
def numbers_of_numpy_as_indices_and_keys(x, n, box):
    full = torch.full((2,), np.float32(1.5))
    return (
        x.reshape(np.int64(-1)),
        x[np.int64(0)],
        x.sum(np.int64(0)),
        full,
        [1, 2, 3][np.int64(1)],
        {np.int64(1): n}[1],
    )


@program
def arithmetic_of_numbers_keeps_their_classes(x, n, box):
    small = np.int8(100) + np.int8(n), -np.int8(3), abs(np.float32(-2)), round(np.float64(2.567), 2)
    return (
        small,
        np.float32(0.1) + 0.2,
        np.int64(7) // n,
        n + np.int64(1),
        f"{np.float32(n)} {np.int64(n)!r}",
        x + 1,
    )
