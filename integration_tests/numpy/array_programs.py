"""Thirty-odd everyday programs over NumPy arrays, each with what makes its arguments."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
import torch

PROGRAMS = {}


def ramp(*shape):
    return np.linspace(-2, 3, int(np.prod(shape))).reshape(shape)


def program(*shapes):
    """Of arrays of these shapes, or of other things that are given."""

    def keep(fn):
        PROGRAMS[fn.__name__] = (
            fn,
            lambda: tuple(ramp(*part) if type(part) is tuple else part() for part in shapes),
        )
        return fn

    return keep


@program(lambda: torch.linspace(-1, 1, 6).reshape(2, 3))
def softmax_of_a_tensor(x):
    a = x.detach().numpy()
    e = np.exp(a - a.max(axis=-1, keepdims=True))
    return torch.from_numpy(e / e.sum(axis=-1, keepdims=True))


@program((4, 3))
def normalise(a):
    return (a - a.mean(axis=0)) / (a.std(axis=0) + 1e-8)


@program((4,), (4,))
def squared_error(a, b):
    return ((a - b) ** 2).mean(), np.abs(a - b).max()


@program(lambda: np.array([1, 3, 5]))
def one_hot(labels):
    return np.eye(10)[labels]


@program((2, 3), (3, 4), (4,))
def linear(a, w, b):
    return np.maximum(a @ w + b, 0)


@program((4,), (4,))
def cosine(a, b):
    return np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b))


@program()
def positions():
    angles = np.arange(16)[:, None] / np.power(10000, 2 * np.arange(8)[None, :] / 8)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


@program((3,))
def to_tensor(a):
    return torch.from_numpy(a.astype(np.float32)) * 2, torch.tensor(a).sum(), torch.as_tensor(a)


@program((4, 3), lambda: np.array([0, 1, 2, 2]))
def accuracy(a, labels):
    return (a.argmax(axis=1) == labels).mean()


@program((6,))
def differences(a):
    return a[1:] - a[:-1], np.diff(a), a[::2]


@program((2, 3, 3))
def channels_turned(image):
    return image[..., ::-1] * 2, image[::-1, :, ::-1], image.transpose(2, 0, 1)


@program((6,))
def leaky(a):
    return np.where(a > 0, a, 0.1 * a), np.clip(a, -1, 1)


@program((6,))
def written_in_place(a):
    view = a[1:3]
    a += 1
    a[0] = 0
    view *= 2
    np.add(a, 1, out=a)
    return a, view


@program(lambda: torch.arange(4.0))
def written_through_the_other(x):
    a = x.numpy()
    a[0] = 5
    x[1] = 7
    b = torch.from_numpy(a)
    b += 1
    return a, x, b, a.sum()


@program((2, 3), (2, 3))
def stacked(a, b):
    return np.stack([a, b]).transpose(1, 0, 2), np.concatenate((a, b), axis=1), np.vstack([a, b])


@program()
def grid():
    x, y = np.meshgrid(np.linspace(-1, 1, 4), np.linspace(-1, 1, 3))
    return np.stack([x, y], -1)


@program((2, 3))
def sorted_sums(a):
    return np.cumsum(np.sort(a.ravel())), np.take_along_axis(
        a, np.argsort(a, axis=1, kind="stable"), axis=1
    )


@program((6,))
def chosen_by_contents(a):
    return a[a > 0].sum()


@program((4, 3))
def rows(a):
    total = 0
    for row in a:
        total = total + row.sum()
    return total, len(a), a.shape, a.ndim, a.size, a.dtype


@program((4, 3))
def norms(a):
    return np.linalg.norm(a, axis=1), np.linalg.norm(a)


@program((4, 3))
def padded(a):
    return np.pad(a, ((1, 1), (0, 0)))


@program((4, 3), (2, 3))
def products(a, b):
    return np.einsum("ij,kj->ik", a, b), np.outer(a[0], b[1]), a.dot(b.T)


@program(lambda: torch.ones(3), (3,))
def a_tensor_and_an_array(x, a):
    return x + torch.from_numpy(a)


@program((4, 3))
def reshaped(a):
    return a.reshape(-1, 2).sum(axis=1), a.flatten(), a.T, a[None], a.squeeze()


@program((4, 3))
def filled(a):
    out = np.zeros_like(a)
    out[:, 0] = a[:, 1]
    out[a > 1] = -1
    return out


@program((4,))
def gelu(a):
    return 0.5 * a * (1 + np.tanh(np.sqrt(2 / np.pi) * (a + 0.044715 * a**3)))


@program((4,))
def quantised(a):
    scale = np.abs(a).max() / 127
    return np.round(a / scale).astype(np.int8), scale


@program((3, 4))
def log_softmax(a):
    return a - np.log(np.sum(np.exp(a), axis=-1, keepdims=True))


@program((4, 3))
def covariance(a):
    centred = a - a.mean(0, keepdims=True)
    return centred.T @ centred / (len(a) - 1)


@program((5, 2), (3, 2))
def distances(a, b):
    return np.sqrt(((a[:, None, :] - b[None, :, :]) ** 2).sum(-1)).min(axis=1)


@program((8,))
def moving_average(a):
    sums = np.cumsum(np.concatenate([np.zeros(1), a]))
    return (sums[3:] - sums[:-3]) / 3


@program(lambda: np.arange(6).reshape(2, 3))
def integers(a):
    return a // 2, a / 2, a % 3, a << 1, a.sum(), a.mean(), a == 3, (a > 2).any(), a.max() + 1


@program((4,))
def schedule(a):
    return 0.5 * (1 + np.cos(np.pi * np.arange(5) / 5)), np.linspace(0, 1, 5), a * np.float32(2)
