"""Sparse, complex, quantized, strided and odd tensors, as far as fake tensors go."""

# mypy: ignore-errors

from __future__ import annotations

import warnings

import torch

from integration_tests.corpora.behaviours import program

with warnings.catch_warnings():  # given once in a process, so to one side only
    warnings.simplefilter("ignore")
    torch.eye(2).to_sparse_csr()
    torch.sparse_coo_tensor(torch.zeros(1, 1, dtype=torch.long), torch.ones(1), (2,))
    torch.quantize_per_tensor(torch.ones(1), 0.1, 10, torch.quint8)


@program
def complex_numbers(x, n, box):
    z = torch.complex(x, x + 1)
    return (
        z.real,
        z.imag,
        z.conj() * n,
        z.abs(),
        z.angle(),
        torch.view_as_real(z),
        z.is_complex(),
        z.dtype,
    )


@program
def complex_scalars(x, n, box):
    z = x * (1 + 2j)
    return z, z * 1j, z.real * n, z.H if z.dim() == 2 else z


@program
def conj_is_a_lazy_view(x, n, box):
    z = torch.complex(x.detach(), x.detach() + 1)
    c = z.conj()
    return c.is_conj(), c.resolve_conj(), (c * n), z.mH.shape


@program
def real_and_imag_are_views(x, n, box):
    z = torch.zeros(3, dtype=torch.complex64)
    z.real.fill_(n)
    z.imag += 2
    return z


@program
def fourier_transforms(x, n, box):
    y = torch.fft.rfft(x)
    return (
        torch.fft.irfft(y, n=3),
        torch.fft.fftshift(torch.fft.fft2(x)).abs(),
        torch.fft.fftfreq(n + 1),
    )


@program
def sparse_made_here(x, n, box):
    s = torch.sparse_coo_tensor(
        torch.tensor([[0, 1], [2, 0]]), torch.tensor([3.0, float(n)]), (2, 3)
    )
    return s.to_dense(), s.is_sparse, s.layout, torch.sparse.mm(s, torch.ones(3, 2))


SPARSE = torch.eye(3).to_sparse()


@program
def sparse_global(x, n, box):
    return SPARSE @ torch.ones(3, 2), SPARSE.to_dense() * n, SPARSE.coalesce()


@program
def sparse_rows(x, n, box):
    csr = (box.tensor * n).to_sparse_csr()
    return csr.crow_indices(), csr @ torch.ones(3, 1)


@program(breaks="data-dependent-shape")
def how_many_items_a_sparse_tensor_stores(x, n, box):
    made = (box.tensor * n).to_sparse()
    return (
        made._nnz(),
        made.values().shape,
        made.coalesce().indices().numel(),
        SPARSE._nnz(),
        SPARSE.coalesce().values() * n,
    )


@program(breaks="data-dependent-shape")
def how_many_items_compressed_rows_store(x, n, box):
    made = (box.tensor * n).to_sparse_csr()
    return (
        made._nnz(),
        len(made.values()),
        made.col_indices().shape,
        made.to_sparse_coo().is_coalesced(),
    )


@program(breaks="data-dependent-shape")
def how_many_dimensions_are_sparse(x, n, box):
    items = torch.stack([box.tensor, box.tensor * n], -1).to_sparse(1 if n > 2 else 2)
    return items.sparse_dim(), items.dense_dim(), items.values().dim()


@program(breaks="no-fake-kernel")
def sparse_tensors_are_written_to(x, n, box):
    rows, items = box.tensor.detach().to_sparse_csr(), box.tensor.detach().to_sparse()
    rows.mul_(2)
    items.mul_(n)
    return rows.to_dense(), items.to_dense()


@program
def half_and_odd_dtypes(x, n, box):
    return (
        x.half() * n,
        x.bfloat16() + 1,
        x.to(torch.float8_e4m3fn).float(),
        torch.tensor([1, n], dtype=torch.uint8),
    )


@program
def booleans_and_integers(x, n, box):
    m = x > 0
    return (
        m & ~m,
        m | True,
        m.sum(),
        m.long() << n,
        torch.bitwise_not(m),
        m.any(),
        m.all(dim=0),
        m.float().mean(),
    )


@program
def zero_dimensional(x, n, box):
    s = torch.tensor(2.5)
    return s * n, s.shape, x * s, s.dim(), torch.tensor(n) + 1, s.expand(3), s[None], s[...]


@program
def empty_tensors(x, n, box):
    e = x[:0]
    return e.shape, e.sum(), torch.cat([e, x]), e.numel(), torch.zeros(0, n), list(e)


@program
def strides_and_overlap(x, n, box):
    y = box.tensor.as_strided((2, 2), (1, 1))
    w = torch.arange(6.0).unfold(0, 3, 1)
    return y * n, w.sum(1), box.tensor.T.stride(), torch.ones(2).expand(3, 2).stride()


@program
def channels_last(x, n, box):
    y = torch.arange(16.0).view(1, 2, 2, 4).to(memory_format=torch.channels_last)
    z = torch.nn.functional.relu(y - n)
    return z, z.stride(), z.is_contiguous(memory_format=torch.channels_last)


@program
def nested_tensors(x, n, box):
    t = torch.nested.nested_tensor([torch.ones(2), torch.ones(3) * n], layout=torch.jagged)
    return (t * 2).to_padded_tensor(0.0), x + 1


@program
def an_attribute_that_no_tensor_has(x, n, box):
    try:
        return x.names
    except AttributeError as error:
        return str(error), x * n


@program(breaks="no-fake-kernel")
def quantized(x, n, box):
    q = torch.quantize_per_tensor(x.detach(), 0.1, 10, torch.quint8)
    return q.dequantize() * n, q.is_quantized


@program
def type_promotion(x, n, box):
    i = torch.arange(3)
    return (
        i + 1.5,
        i * n,
        i / 2,
        i // 2,
        i + x.double()[0],
        torch.result_type(i, 1.0),
        torch.can_cast(i.dtype, x.dtype),
    )


@program
def infinities_and_nan(x, n, box):
    y = torch.tensor([float("inf"), -float("inf"), float("nan"), -0.0])
    return y, y + n, torch.eq(y, y), torch.nan_to_num(y), y.signbit(), 1 / y, y.isfinite()


@program
def factories(x, n, box):
    return (
        torch.arange(n),
        torch.linspace(0, 1, n + 1),
        torch.eye(n),
        torch.full((2,), n),
        torch.full_like(x, n),
        x.new_full((n,), 1.5),
        torch.zeros(n, dtype=torch.int8),
        torch.tensor([[n, 1], [2, 3]]),
        torch.as_tensor([1.0, n]),
        torch.scalar_tensor(n),
        torch.logspace(0, 1, 3),
        torch.tril_indices(3, 3),
    )


@program
def constructors_of_before(x, n, box):
    made = (
        torch.Tensor([[1, n], [True, 2.5]]),
        torch.LongTensor((1, n, -2.9)),
        torch.DoubleTensor([x.shape[0]] * 2),
    )
    empty = torch.Tensor(), torch.IntTensor([]), torch.ByteTensor([[]])
    sized = (
        torch.Tensor(2, n).fill_(1),
        torch.BoolTensor(x.shape).zero_(),
        torch.HalfTensor(torch.Size([2])).fill_(n),
    )
    return made, empty, sized, x + torch.FloatTensor([n]), type(made[0])


@program
def constructors_of_before_know_the_default_dtype(x, n, box):
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        return torch.Tensor([n, 1]), torch.Tensor(1).zero_(), torch.FloatTensor([n])
    finally:
        torch.set_default_dtype(before)


@program
def constructors_of_before_share_memory_with_a_tensor(x, n, box):
    shared = torch.Tensor(box.tensor)
    shared += n
    return shared, box.tensor


@program(breaks="construction")
def constructors_of_before_refuse(x, n, box):
    found = []
    for make in (
        lambda: torch.Tensor(2.5),
        lambda: torch.LongTensor([[1], 2]),
        lambda: torch.Tensor(True),
    ):
        try:
            found.append(make())
        except (TypeError, ValueError) as error:
            found.append((type(error), str(error)))
    return found, x * n
