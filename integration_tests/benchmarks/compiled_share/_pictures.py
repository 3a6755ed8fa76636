"""Models of pictures: classification, segmentation, detection, generation, augmentation."""

from __future__ import annotations

import types
from typing import Any

import torch
from torch import Tensor, nn

from integration_tests.benchmarks.compiled_share._step import (
    Compiled,
    classes,
    classifier,
    forward,
    loss_of,
    training,
)
from integration_tests.benchmarks.real_models._workload import Program, Workload, always, library


def _pictures(size: int = 32, batch: int = 2) -> Tensor:
    return torch.rand(batch, 3, size, size)


def _transformer(name: str, **sizes: Any) -> nn.Module:
    model_class = getattr(library("transformers"), name)
    model: nn.Module = model_class(model_class.config_class(**sizes))
    return model


_WIDTHS = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "image_size": 32,
    "patch_size": 8,
}


def _vit() -> Program:
    model = _transformer("ViTForImageClassification", **_WIDTHS, num_labels=4)
    return training(model, pixel_values=_pictures(), labels=classes(2))


def _swin() -> Program:
    sizes = {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [1, 2], "window_size": 4}
    model = _transformer("SwinForImageClassification", **sizes, num_heads=[2, 4], num_labels=4)
    return training(model, pixel_values=_pictures(), labels=classes(2))


def _segformer() -> Program:
    sizes = {
        "num_encoder_blocks": 2,
        "depths": [1, 1],
        "sr_ratios": [2, 1],
        "hidden_sizes": [16, 32],
        "patch_sizes": [7, 3],
        "strides": [4, 2],
        "num_attention_heads": [1, 2],
        "mlp_ratios": [2, 2],
        "decoder_hidden_size": 16,
    }
    model = _transformer("SegformerForSemanticSegmentation", **sizes, num_labels=4)
    return training(model, pixel_values=_pictures(), labels=torch.randint(0, 4, (2, 32, 32)))


def _detr(in_training: bool) -> Program:
    backbone = library("transformers").ResNetConfig(
        embedding_size=8,
        hidden_sizes=[8, 8, 16, 16],
        depths=[1, 1, 1, 1],
        out_features=["stage4"],
    )
    sizes = {
        "d_model": 32,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "num_queries": 10,
    }
    model = _transformer("DetrForObjectDetection", **sizes, backbone_config=backbone, num_labels=4)
    if not in_training:
        return forward(model, pixel_values=_pictures(64))

    boxes = torch.tensor([[0.5, 0.5, 0.4, 0.4], [0.3, 0.6, 0.2, 0.2]])
    labels = [{"class_labels": torch.tensor([1, 2]), "boxes": boxes} for _ in range(2)]
    return training(model, pixel_values=_pictures(64), labels=labels)


def _clip() -> Program:
    text = {**_WIDTHS, "vocab_size": 99, "max_position_embeddings": 16, "eos_token_id": 98}
    model = _transformer("CLIPModel", text_config=text, vision_config=_WIDTHS, projection_dim=16)
    ids = torch.randint(3, 99, (2, 12))
    return training(model, input_ids=ids, pixel_values=_pictures(), return_loss=True)


def _open_clip() -> Program:
    package = library("open_clip")
    vision = {"image_size": 32, "layers": 2, "width": 32, "head_width": 8, "patch_size": 8}
    text = {"context_length": 16, "vocab_size": 99, "width": 32, "heads": 4, "layers": 2}
    model = package.CLIP(embed_dim=16, vision_cfg=vision, text_cfg=text)
    contrast = package.ClipLoss()

    def loss(pictures: Tensor, text: Tensor) -> Any:
        return contrast(*model(pictures, text))

    return loss_of(loss, [model.train()], _pictures(), torch.randint(1, 99, (2, 16)))


def _yolo() -> Program:
    """YOLOv8 with its own loss, which assigns boxes to anchors."""
    model = library("ultralytics.nn.tasks").DetectionModel(
        "yolov8n.yaml", ch=3, nc=4, verbose=False
    )
    model.args = types.SimpleNamespace(box=7.5, cls=0.5, dfl=1.5)
    boxes = torch.tensor([[0.5, 0.5, 0.4, 0.4], [0.3, 0.6, 0.3, 0.2], [0.6, 0.4, 0.5, 0.5]])
    batch = {
        "img": _pictures(64),
        "batch_idx": torch.tensor([0.0, 0.0, 1.0]),
        "cls": torch.tensor([[1.0], [2.0], [0.0]]),
        "bboxes": boxes,
    }

    def loss(batch: dict[str, Tensor]) -> Any:
        total, _ = model(batch)
        return total.sum()

    return loss_of(loss, [model.train()], batch)


def _timm(name: str, in_training: bool = True, size: int = 64, **options: Any) -> Program:
    model = library("timm").create_model(name, num_classes=4, **options)
    if not in_training:
        return forward(model, _pictures(size))
    return loss_of(classifier(model.train()), [model], _pictures(size), classes(2))


def _torchvision(name: str) -> Program:
    model = getattr(library("torchvision.models"), name)(num_classes=4).train()
    return loss_of(classifier(model), [model], _pictures(64), classes(2))


def _torchvision_segmentation() -> Program:
    models = library("torchvision.models.segmentation")
    model = models.lraspp_mobilenet_v3_large(
        num_classes=4, weights=None, weights_backbone=None
    ).train()

    def loss(x: Tensor, wanted: Tensor) -> Tensor:
        return nn.functional.cross_entropy(model(x)["out"], wanted)

    return loss_of(loss, [model], _pictures(64), torch.randint(0, 4, (2, 64, 64)))


def _segmentation_models() -> Program:
    package = library("segmentation_models_pytorch")
    model = package.Unet("resnet18", encoder_weights=None, classes=4).train()
    dice = package.losses.DiceLoss("multiclass")

    def loss(x: Tensor, wanted: Tensor) -> Any:
        return dice(model(x), wanted)

    return loss_of(loss, [model], _pictures(64), torch.randint(0, 4, (2, 64, 64)))


def _swin_unetr() -> Program:
    nets, losses = library("monai.networks.nets"), library("monai.losses")
    model = nets.SwinUNETR(
        in_channels=1, out_channels=2, feature_size=12, spatial_dims=2, depths=(1, 1, 1, 1)
    )
    dice = losses.DiceCELoss(to_onehot_y=True, softmax=True)

    def loss(x: Tensor, wanted: Tensor) -> Any:
        return dice(model(x), wanted)

    wanted = torch.randint(0, 2, (1, 1, 64, 64)).float()
    return loss_of(loss, [model.train()], torch.randn(1, 1, 64, 64), wanted)


def _monai_unet() -> Program:
    model = library("monai.networks.nets").UNet(3, 1, 2, (4, 8, 16), (2, 2), num_res_units=1)
    return training(model, torch.randn(1, 1, 16, 16, 16))


def _vit_pytorch(name: str, **options: Any) -> Program:
    sizes = {"num_classes": 4, "dim": 32, "depth": 2, "heads": 2, "mlp_dim": 48}
    module = library("vit_pytorch" if name == "ViT" else f"vit_pytorch.{name.lower()}")
    model = getattr(module, name)(image_size=32, patch_size=8, **sizes, **options).train()
    return loss_of(classifier(model), [model], _pictures(), classes(2))


def _max_vit() -> Program:
    sizes = {"num_classes": 4, "dim": 16, "dim_head": 8, "depth": (1, 1, 2), "window_size": 4}
    model = library("vit_pytorch.max_vit").MaxViT(**sizes, dropout=0.1).train()
    return loss_of(classifier(model), [model], _pictures(64, 1), classes(1))


def _unet_model() -> Any:
    return library("diffusers").UNet2DModel(
        sample_size=16,
        block_out_channels=(8, 16),
        norm_num_groups=4,
        layers_per_block=1,
        attention_head_dim=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )


def _unet_training() -> Program:
    """A step of training with noise that a scheduler of ``diffusers`` adds."""
    model = _unet_model().train()
    scheduler = library("diffusers").DDPMScheduler()

    def loss(pictures: Tensor, steps: Tensor) -> Tensor:
        noise = torch.randn_like(pictures)
        noisy = scheduler.add_noise(pictures, noise, steps)
        return nn.functional.mse_loss(model(noisy, steps).sample, noise)

    return loss_of(loss, [model], _pictures(16), torch.tensor([5, 700]))


def _ddim_loop() -> Program:
    """Five denoising steps; model and scheduler are compiled together, step by step."""
    model = _unet_model().eval()
    scheduler = library("diffusers").DDIMScheduler()
    scheduler.set_timesteps(5)

    def denoise(sample: Tensor, step: Tensor) -> Any:
        return scheduler.step(model(sample, step).sample, step, sample).prev_sample

    def driver(compiled: Compiled) -> Compiled:
        def loop(sample: Tensor) -> Tensor:
            for step in scheduler.timesteps:
                sample = compiled(sample, step)
            return sample

        return loop

    return Program(denoise, always(torch.randn(2, 3, 16, 16)), driver)


def _ddpm() -> Program:
    """A training step of ``denoising_diffusion_pytorch``."""
    package = library("denoising_diffusion_pytorch")
    net = package.Unet(dim=16, dim_mults=(1, 2), flash_attn=False)
    model = package.GaussianDiffusion(net, image_size=16, timesteps=20)
    return training(model, _pictures(16))


def _autoencoder() -> Program:
    down, up = ("DownEncoderBlock2D",) * 2, ("UpDecoderBlock2D",) * 2
    model = library("diffusers").AutoencoderKL(
        block_out_channels=(8, 8),
        norm_num_groups=4,
        latent_channels=4,
        down_block_types=down,
        up_block_types=up,
    )
    return training(model, _pictures(16), return_dict=False)


def _text_to_picture() -> Program:
    """The conditional UNet of Stable Diffusion."""
    model = library("diffusers").UNet2DConditionModel(
        sample_size=8,
        in_channels=4,
        out_channels=4,
        block_out_channels=(8, 16),
        norm_num_groups=4,
        layers_per_block=1,
        cross_attention_dim=16,
        attention_head_dim=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
    )
    return forward(model, torch.randn(2, 4, 8, 8), torch.tensor(7), torch.randn(2, 6, 16))


def _augmentation() -> Program:
    """A pipeline of random augmentations of ``kornia``, followed by a classifier."""
    augment = library("kornia.augmentation")
    pipeline = augment.AugmentationSequential(
        augment.RandomHorizontalFlip(p=0.5),
        augment.RandomAffine(degrees=15.0, p=1.0),
        augment.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0),
        augment.RandomGaussianBlur((3, 3), (0.1, 2.0), p=0.5),
        data_keys=["input"],
    )
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 30 * 30, 4))

    def loss(pictures: Tensor, wanted: Tensor) -> Tensor:
        return nn.functional.cross_entropy(model(pipeline(pictures)), wanted)

    return loss_of(loss, [model], _pictures(), classes(2))


def _perceptual_loss() -> Program:
    measure = library("lpips").LPIPS(net="squeeze", pretrained=False, pnet_rand=True, verbose=False)
    model = nn.Conv2d(3, 3, 3, padding=1)

    def loss(pictures: Tensor) -> Any:
        return measure(model(pictures), pictures).mean()

    return loss_of(loss, [model], _pictures(64))


def _residual_quantizer() -> Program:
    model = library("vector_quantize_pytorch").ResidualVQ(dim=16, num_quantizers=3, codebook_size=8)
    encoder = nn.Linear(16, 16)

    def loss(x: Tensor) -> Any:
        quantized, _, commitment = model(encoder(x))
        return (quantized - x).square().mean() + commitment.sum()

    return loss_of(loss, [encoder, model.train()], torch.randn(2, 12, 16))


def _perceiver() -> Program:
    sizes = {"num_latents": 8, "latent_dim": 16, "latent_heads": 2, "cross_dim_head": 8}
    model = library("perceiver_pytorch").Perceiver(
        num_freq_bands=4, depth=2, max_freq=8.0, num_classes=4, latent_dim_head=8, **sizes
    )
    return loss_of(classifier(model.train()), [model], torch.randn(2, 16, 16, 3), classes(2))


_FACE = ("transformers",)
_TIMM = ("timm", "torchvision")

PICTURES = (
    Workload("vit with labels, training", _vit, _FACE, True),
    Workload("swin with labels, training", _swin, _FACE, True),
    Workload("segformer with labels, training", _segformer, _FACE, True),
    Workload("detr", lambda: _detr(False), _FACE),
    Workload("detr with labels, training", lambda: _detr(True), _FACE, True),
    Workload("clip, training", _clip, _FACE, True),
    Workload("open_clip, training", _open_clip, ("open_clip",), True),
    Workload("yolov8 with its loss, training", _yolo, ("ultralytics",), True),
    Workload("timm resnet18, training", lambda: _timm("resnet18"), _TIMM, True),
    Workload("timm efficientnet_b0, training", lambda: _timm("efficientnet_b0"), _TIMM, True),
    Workload("timm convnext_atto", lambda: _timm("convnext_atto", False), _TIMM),
    Workload(
        "timm swin_tiny, training",
        lambda: _timm("swin_tiny_patch4_window7_224", True, 56, img_size=56, depths=(1, 1, 2, 1)),
        _TIMM,
        True,
    ),
    Workload(
        "timm vit_tiny, training",
        lambda: _timm("vit_tiny_patch16_224", True, 64, img_size=64, depth=4),
        _TIMM,
        True,
    ),
    Workload(
        "torchvision resnet18, training", lambda: _torchvision("resnet18"), ("torchvision",), True
    ),
    Workload("torchvision lraspp, training", _torchvision_segmentation, ("torchvision",), True),
    Workload(
        "segmentation_models unet, training",
        _segmentation_models,
        ("segmentation_models_pytorch",),
        True,
    ),
    Workload("monai swin-unetr, training", _swin_unetr, ("monai",), True),
    Workload("monai unet, training", _monai_unet, ("monai",), True),
    Workload("vit-pytorch vit, training", lambda: _vit_pytorch("ViT"), ("vit_pytorch",), True),
    Workload("vit-pytorch maxvit, training", _max_vit, ("vit_pytorch",), True),
    Workload("diffusers unet, training", _unet_training, ("diffusers",), True),
    Workload("diffusers ddim loop", _ddim_loop, ("diffusers",)),
    Workload("diffusers autoencoder, training", _autoencoder, ("diffusers",), True),
    Workload("diffusers conditional unet", _text_to_picture, ("diffusers",)),
    Workload("ddpm, training", _ddpm, ("denoising_diffusion_pytorch",), True),
    Workload("kornia augmentation, training", _augmentation, ("kornia",), True),
    Workload("lpips, training", _perceptual_loss, ("lpips", "torchvision"), True),
    Workload(
        "residual vector quantization, training",
        _residual_quantizer,
        ("vector_quantize_pytorch",),
        True,
    ),
    Workload("perceiver, training", _perceiver, ("perceiver_pytorch",), True),
)
