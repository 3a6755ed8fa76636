"""Other people's libraries, where they are installed: models, layers and functions, each called as
its users do.

A row names what it runs after the module that has it, is given that module, and makes the arguments
of a call for a batch of some size. Rows of a library that is not installed are left out (see
README.md for how to get them).
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

import attrs
import torch
from torch import Tensor, rand, randint, randn

from integration_tests.support.arguments import Call

_Args = Callable[[int], tuple[Any, ...]]


@attrs.frozen
class Row:
    """`build(module)` is what to call, `args(batch)` with what."""

    name: str
    build: Callable[[Any], Any]
    args: _Args

    @property
    def library(self) -> str:
        return self.name.partition(".")[0]

    def make(self) -> Any:
        _define_operators()
        return self.build(importlib.import_module(self.name.rpartition(".")[0]))

    def call(self, batch: int) -> Call:
        return Call(self.args(batch))


def _define_operators() -> None:
    """torchvision defines fakes of its operators on import, also where its library of kernels does
    not load."""
    boxes = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
    for name in ("nms", "qnms"):
        if importlib.util.find_spec("torchvision") and not hasattr(torch.ops.torchvision, name):
            torch.library.define(f"torchvision::{name}", boxes)


def _images(batch: int) -> tuple[Tensor, ...]:
    return (rand(batch, 3, 32, 32),)


def _tokens(batch: int) -> tuple[Tensor, ...]:
    return (randint(0, 50, (batch, 12)),)


def _rows(*sizes: int) -> _Args:
    return lambda batch: (randn(batch, *sizes),)


def _classes(batch: int) -> tuple[Tensor, ...]:
    return randn(batch + 3, 4).softmax(-1), randint(0, 4, (batch + 3,))


def _masks(batch: int) -> tuple[Tensor, ...]:
    return randn(batch, 3, 4, 4), randint(0, 3, (batch, 4, 4))


def _graph(batch: int) -> tuple[Tensor, ...]:
    return randn(6 * batch, 8), randint(0, 6 * batch, (2, 10 * batch + 1))


def _levels(batch: int) -> tuple[Any, ...]:
    return ({"wide": randn(batch, 4, 8, 8), "deep": randn(batch, 8, 4, 4)},)


def _pair(*sizes: int) -> _Args:
    return lambda batch: (randn(batch + 2, *sizes), randn(batch + 2, *sizes))


def _decoder(lib: Any, **options: Any) -> Any:
    layers = lib.Decoder(dim=32, depth=1, heads=2, attn_dim_head=16, **options)
    return lib.TransformerWrapper(num_tokens=50, max_seq_len=32, attn_layers=layers)


def _multiclass(function: Any, given: Tensor, wanted: Tensor) -> Any:
    return function(given, wanted, task="multiclass", num_classes=4)


def _ode(lib: Any, method: str) -> Any:
    grid = torch.linspace(0, 1, 3)
    return lambda y: lib.odeint(
        lambda t, y: torch.tanh(y) * t, y, grid, method=method, rtol=1e-2, atol=1e-2
    )


def _autoencoder(lib: Any) -> Any:
    sizes = {"block_out_channels": (8, 8), "norm_num_groups": 4, "latent_channels": 4}
    down, up = ("DownEncoderBlock2D",) * 2, ("UpDecoderBlock2D",) * 2
    return lib.AutoencoderKL(**sizes, down_block_types=down, up_block_types=up)


_VIT = {
    "image_size": 32,
    "patch_size": 8,
    "num_classes": 10,
    "dim": 32,
    "depth": 1,
    "heads": 2,
    "mlp_dim": 48,
}

ROWS = (
    Row(
        "einops.layers.torch.Rearrange",
        lambda lib: lib.Rearrange("b (h p) w -> b h (p w)", p=2),
        _rows(8, 4),
    ),
    Row("einx.rearrange", lambda lib: lambda x: lib.id("b (h p) -> (b h) p", x, p=2), _rows(6)),
    Row("einx.softmax", lambda lib: lambda x: lib.softmax("b [c]", x), _rows(6)),
    Row("vit_pytorch.ViT", lambda lib: lib.ViT(**_VIT, dropout=0.1), _images),
    Row("vit_pytorch.deepvit.DeepViT", lambda lib: lib.DeepViT(**_VIT), _images),
    Row("vit_pytorch.simple_vit.SimpleViT", lambda lib: lib.SimpleViT(**_VIT), _images),
    Row("x_transformers.plain", _decoder, _tokens),
    Row("x_transformers.rotary", lambda lib: _decoder(lib, rotary_pos_emb=True), _tokens),
    Row(
        "x_transformers.dropout",
        lambda lib: _decoder(lib, attn_dropout=0.1, ff_dropout=0.1),
        _tokens,
    ),
    Row("x_transformers.loss", lambda lib: lib.AutoregressiveWrapper(_decoder(lib)), _tokens),
    Row(
        "torchmetrics.functional.accuracy",
        lambda lib: lambda p, t: _multiclass(lib.accuracy, p, t),
        _classes,
    ),
    Row(
        "torchmetrics.functional.confusion_matrix",
        lambda lib: lambda p, t: _multiclass(lib.confusion_matrix, p, t),
        _classes,
    ),
    Row("torchmetrics.functional.spearman_corrcoef", lambda lib: lib.spearman_corrcoef, _pair()),
    Row("torchmetrics.MeanSquaredError", lambda lib: lib.MeanSquaredError(), _pair()),
    Row("torchmetrics.CatMetric", lambda lib: lib.CatMetric(), _rows()),
    Row("kornia.filters.sobel", lambda lib: lib.sobel, _images),
    Row("kornia.filters.median_blur", lambda lib: lambda x: lib.median_blur(x, 3), _images),
    Row("kornia.color.rgb_to_lab", lambda lib: lib.rgb_to_lab, _images),
    Row(
        "kornia.morphology.dilation",
        lambda lib: lambda x: lib.dilation(x, torch.ones(3, 3)),
        _images,
    ),
    Row("kornia.metrics.ssim", lambda lib: lambda x: lib.ssim(x, x.flip(0), 5), _images),
    Row("kornia.losses.dice_loss", lambda lib: lib.dice_loss, _masks),
    Row("kornia.geometry.build_pyramid", lambda lib: lambda x: lib.build_pyramid(x, 2), _images),
    Row(
        "timm.test_vit",
        lambda lib: lib.create_model("test_vit", num_classes=4, img_size=32),
        _images,
    ),
    Row("timm.test_resnet", lambda lib: lib.create_model("test_resnet", num_classes=4), _images),
    Row("timm.layers.SplitAttn", lambda lib: lib.SplitAttn(8), _rows(8, 6, 6)),
    Row("torchvision.transforms.v2.Resize", lambda lib: lib.Resize((8, 8)), _images),
    Row(
        "torchvision.ops.FeaturePyramidNetwork",
        lambda lib: lib.FeaturePyramidNetwork([4, 8], 6),
        _levels,
    ),
    Row("torch_geometric.nn.GCNConv", lambda lib: lib.GCNConv(8, 4), _graph),
    Row("torch_geometric.nn.SAGEConv", lambda lib: lib.SAGEConv(8, 4), _graph),
    Row("torch_geometric.nn.GATConv", lambda lib: lib.GATConv(8, 4, 2), _graph),
    Row("torch_geometric.nn.TransformerConv", lambda lib: lib.TransformerConv(8, 4, 2), _graph),
    Row("torch_geometric.nn.TopKPooling", lambda lib: lib.TopKPooling(8, ratio=0.5), _graph),
    Row("torchdiffeq.explicit_adams", lambda lib: _ode(lib, "explicit_adams"), _rows(4)),
    Row("torchdiffeq.dopri5", lambda lib: _ode(lib, "dopri5"), _rows(4)),
    Row("ncps.torch.CfC", lambda lib: lib.CfC(4, 8), _rows(5, 4)),
    Row("ncps.torch.LTC", lambda lib: lib.LTC(4, 8), _rows(3, 4)),
    Row("entmax.Entmax15", lambda lib: lib.Entmax15(dim=-1), _rows(7)),
    Row("entmax.Sparsemax", lambda lib: lib.Sparsemax(dim=-1), _rows(7)),
    Row("entmax.EntmaxBisect", lambda lib: lib.EntmaxBisect(alpha=1.3), _rows(7)),
    Row(
        "e3nn.o3.spherical_harmonics",
        lambda lib: lambda x: lib.spherical_harmonics([0, 1, 2], x, True),
        _rows(3),
    ),
    Row("e3nn.nn.BatchNorm", lambda lib: lib.BatchNorm("2x0e+1x1o"), _rows(5)),
    Row(
        "tensordict.apply",
        lambda lib: lambda x: lib.TensorDict({"a": x}, [x.shape[0]]).apply(torch.sin)["a"],
        _rows(3),
    ),
    Row(
        "pytorch_metric_learning.losses.NTXentLoss",
        lambda lib: lib.NTXentLoss(),
        lambda n: (randn(4 * n, 8), torch.arange(4 * n) % 3),
    ),
    Row(
        "segmentation_models_pytorch.losses.DiceLoss",
        lambda lib: lib.DiceLoss("multiclass"),
        _masks,
    ),
    Row(
        "segmentation_models_pytorch.losses.FocalLoss",
        lambda lib: lib.FocalLoss("multiclass"),
        _masks,
    ),
    Row("lightly.loss.NTXentLoss", lambda lib: lib.NTXentLoss(), _pair(8)),
    Row("lightly.loss.BarlowTwinsLoss", lambda lib: lib.BarlowTwinsLoss(), _pair(8)),
    Row(
        "nnAudio.features.MelSpectrogram",
        lambda lib: lib.MelSpectrogram(sr=1000, n_fft=64, n_mels=8, verbose=False),
        _rows(400),
    ),
    Row("diffusers.AutoencoderKL", _autoencoder, _images),
    Row(
        "diffusers.DDIMScheduler",
        lambda lib: lib.DDIMScheduler().add_noise,
        lambda n: (*_pair(4)(n), torch.full((n + 2,), 5)),
    ),
)


LIBRARIES = {row.name: row for row in ROWS if importlib.util.find_spec(row.library)}
