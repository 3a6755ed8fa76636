"""Models of pictures, sound and graphs from public packages, and what torch itself has."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from integration_tests.benchmarks.real_models._workload import Program, Workload, always, library


def _cross_entropy(model: nn.Module, x: Tensor, wanted: Tensor) -> Tensor:
    return nn.functional.cross_entropy(model(x), wanted)


def _timm(name: str, size: int = 64, **options: Any) -> Program:
    return Program(
        library("timm").create_model(name, num_classes=10, **options).eval(),
        always(torch.randn(2, 3, size, size)),
    )


def _timm_training(name: str, size: int = 64) -> Program:
    model = library("timm").create_model(name, num_classes=10).train()
    return Program(
        _cross_entropy, always(model, torch.randn(2, 3, size, size), torch.tensor([1, 3]))
    )


def _vit_pytorch() -> Program:
    sizes = {
        "image_size": 32,
        "patch_size": 8,
        "num_classes": 10,
        "dim": 32,
        "depth": 6,
        "heads": 2,
        "mlp_dim": 48,
    }
    return Program(library("vit_pytorch").ViT(**sizes).eval(), always(torch.randn(2, 3, 32, 32)))


def _max_vit() -> Program:
    sizes = {"num_classes": 10, "dim": 16, "dim_head": 8, "depth": (1, 1, 2), "window_size": 4}
    return Program(
        library("vit_pytorch.max_vit").MaxViT(**sizes, dropout=0.1).eval(),
        always(torch.randn(1, 3, 64, 64)),
    )


def _hugging_face(name: str) -> Program:
    from integration_tests.corpora.models import ZOO

    model, call, _ = ZOO[name].make()
    return Program(model, always(*call.args, **call.kwargs))


def _graph(nodes: int = 12, edges: int = 40) -> tuple[Tensor, Tensor]:
    return torch.randn(nodes, 8), torch.randint(0, nodes, (2, edges))


def _graph_network(name: str, **options: Any) -> Program:
    network = getattr(library("torch_geometric.nn").models, name)
    model = network(in_channels=8, hidden_channels=16, num_layers=4, out_channels=4, **options)
    return Program(model.eval(), always(*_graph()))


def _perceiver() -> Program:
    sizes = {
        "num_latents": 8,
        "latent_dim": 16,
        "latent_heads": 2,
        "cross_dim_head": 8,
        "latent_dim_head": 8,
    }
    model = library("perceiver_pytorch").Perceiver(
        num_freq_bands=4, depth=4, max_freq=8.0, num_classes=10, **sizes
    )
    return Program(model.eval(), always(torch.randn(1, 16, 16, 3)))


def _reformer() -> Program:
    sizes = {"num_tokens": 99, "dim": 32, "depth": 2, "max_seq_len": 64, "heads": 2, "dim_head": 16}
    model = library("reformer_pytorch").ReformerLM(**sizes, bucket_size=8, n_hashes=2, causal=True)
    return Program(model.eval(), always(torch.randint(0, 99, (1, 32))))


def _conformer() -> Program:
    model = library("conformer").Conformer(
        dim=32, depth=6, dim_head=16, heads=2, conv_kernel_size=7
    )
    return Program(model.eval(), always(torch.randn(2, 24, 32)))


def _unet() -> Program:
    model = library("diffusers").UNet2DModel(
        sample_size=16,
        block_out_channels=(8, 16),
        norm_num_groups=4,
        layers_per_block=1,
        attention_head_dim=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )
    return Program(model.eval(), always(torch.randn(1, 3, 16, 16), 5))


def _torch_transformer(training: bool) -> Program:
    model = nn.Transformer(32, 4, 6, 6, 64, dropout=0.1, batch_first=True)
    return Program(model.train(training), always(torch.randn(2, 12, 32), torch.randn(2, 8, 32)))


def _lstm() -> Program:
    return Program(nn.LSTM(16, 32, 3, batch_first=True), always(torch.randn(2, 10, 16)))


_TIMM = ("timm", "torchvision")

VISION = (
    Workload("timm resnet18", lambda: _timm("resnet18"), _TIMM),
    Workload("timm resnet18 training, loss", lambda: _timm_training("resnet18"), _TIMM, True),
    Workload(
        "timm efficientnet_b0 training, loss",
        lambda: _timm_training("efficientnet_b0"),
        _TIMM,
        True,
    ),
    Workload(
        "timm mobilevit_xxs training, loss", lambda: _timm_training("mobilevit_xxs"), _TIMM, True
    ),
    Workload("timm vit_tiny", lambda: _timm("vit_tiny_patch16_224", img_size=64), _TIMM),
    Workload("timm convnext_atto", lambda: _timm("convnext_atto"), _TIMM),
    Workload(
        "timm swin_tiny", lambda: _timm("swin_tiny_patch4_window7_224", 56, img_size=56), _TIMM
    ),
    Workload("vit", lambda: _hugging_face("vit"), ("transformers",)),
    Workload("whisper", lambda: _hugging_face("whisper"), ("transformers",)),
    Workload("wav2vec2", lambda: _hugging_face("wav2vec2"), ("transformers",)),
    Workload("vit-pytorch ViT", _vit_pytorch, ("vit_pytorch",)),
    Workload("vit-pytorch MaxViT", _max_vit, ("vit_pytorch",)),
    Workload("PyG GCN", lambda: _graph_network("GCN"), ("torch_geometric",)),
    Workload("PyG GIN", lambda: _graph_network("GIN"), ("torch_geometric",)),
    Workload("PyG GAT", lambda: _graph_network("GAT"), ("torch_geometric",)),
    Workload("perceiver", _perceiver, ("perceiver_pytorch",)),
    Workload("reformer", _reformer, ("reformer_pytorch",)),
    Workload("conformer", _conformer, ("conformer",)),
    Workload("diffusers UNet2D", _unet, ("diffusers",)),
    Workload("torch Transformer", lambda: _torch_transformer(False)),
    Workload(
        "torch Transformer training, dropout", lambda: _torch_transformer(True), gradients=True
    ),
    Workload("torch LSTM", _lstm),
)
