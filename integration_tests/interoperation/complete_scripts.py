"""Complete scripts as users write them, with the compile call as a parameter.

Each returns its results, for a comparison of eager code, torch.compile and stator. Those whose
library is not installed are left out.
"""

from __future__ import annotations

import importlib
import importlib.util
import tempfile
from collections.abc import Callable
from typing import Any
from unittest import mock

import attrs
import torch
from torch import Tensor, nn
from torch.nn import functional as F

Compile = Callable[..., Any]


@attrs.frozen
class Script:
    """A script and the libraries that it imports."""

    run: Callable[[Compile], list[Any]]
    libraries: tuple[str, ...] = ()


class Block(nn.Module):
    """A block of a decoder."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.attention, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: Tensor) -> Any:
        batch, length, width = x.shape
        parts = self.attention(self.norms[0](x)).split(width, dim=2)
        heads = [part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts]
        mixed = F.scaled_dot_product_attention(heads[0], heads[1], heads[2], is_causal=True)
        x = x + self.projection(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norms[1](x))


class GPT(nn.Module):
    """A small decoder with its loss."""

    def __init__(self, vocabulary: int = 17, width: int = 16) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(16, width)
        self.blocks = nn.ModuleList(Block(width, 2) for _ in range(2))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> Any:
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = self.head(x)
        loss = None if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return logits, loss


def gpt_training(compile: Compile) -> list[Any]:
    """Train with groups of parameters, a schedule, clipping and gradient accumulation."""
    model = GPT()
    groups = [
        {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.dim() <= 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    compiled, losses = compile(model), []
    for _ in range(4):
        for _ in range(2):
            ids = torch.randint(17, (2, 9))
            _, loss = compiled(ids[:, :-1], ids[:, 1:])
            (loss / 2).backward()
            losses.append(loss.item())
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
    model.eval()
    with torch.no_grad():
        logits, _ = compiled(torch.arange(6)[None])
    return [losses, logits]


def timm_with_ema(compile: Compile) -> list[Any]:
    """Train an image model, and evaluate the average of its weights."""
    timm: Any = importlib.import_module("timm")
    utils: Any = importlib.import_module("timm.utils")
    model = timm.create_model("test_resnet", num_classes=4)
    ema = utils.ModelEmaV2(model, decay=0.9)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    compiled, averaged = compile(model), compile(ema.module)
    losses = []
    for _ in range(3):
        images, labels = torch.randn(2, 3, 64, 64), torch.randint(4, (2,))
        loss: Any = F.cross_entropy(compiled(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update(model)
        losses.append(loss.item())
    averaged.eval()
    with torch.no_grad():
        return [losses, averaged(torch.ones(1, 3, 64, 64))]


class _Texts(torch.utils.data.Dataset[dict[str, Tensor]]):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        ids = torch.arange(6) + index
        return {"input_ids": ids, "attention_mask": torch.ones(6).long(), "labels": ids[0] % 2}


def _tiny_bert(head: str) -> Any:
    transformers: Any = importlib.import_module("transformers")
    config = transformers.BertConfig(
        vocab_size=40,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return getattr(transformers, head)(config)


def hugging_face_trainer(compile: Compile) -> list[Any]:
    """Train with `Trainer`, which calls `torch.compile` itself."""
    transformers: Any = importlib.import_module("transformers")
    model = _tiny_bert("BertForSequenceClassification")
    with tempfile.TemporaryDirectory() as folder, mock.patch("torch.compile", compile):
        args = transformers.TrainingArguments(
            folder,
            max_steps=3,
            per_device_train_batch_size=2,
            torch_compile=True,
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            use_cpu=True,
            disable_tqdm=True,
        )
        trainer = transformers.Trainer(model, args, train_dataset=_Texts())
        loss = trainer.train().training_loss
    return [loss, *model.classifier.parameters()]


def lightning_module(compile: Compile) -> list[Any]:
    """Train a module of Lightning that is compiled."""
    lightning: Any = importlib.import_module("lightning")

    class Module(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
            self.run = compile(self.net)
            self.losses: list[float] = []

        def training_step(self, batch: Any, index: int) -> Any:
            inputs, labels = batch
            loss = F.cross_entropy(self.run(inputs), labels)
            self.losses.append(loss.item())
            return loss

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters(), lr=0.01)

    data = torch.utils.data.TensorDataset(torch.randn(8, 6), torch.randint(2, (8,)))
    module = Module()
    trainer = lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, torch.utils.data.DataLoader(data, batch_size=2))
    return [module.losses, *module.net.parameters()]


def diffusers_sampling(compile: Compile) -> list[Any]:
    """Sample images with a compiled denoiser."""
    diffusers: Any = importlib.import_module("diffusers")
    model = diffusers.UNet2DModel(
        sample_size=8,
        in_channels=1,
        out_channels=1,
        layers_per_block=1,
        block_out_channels=(8, 8),
        norm_num_groups=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    ).eval()
    denoise = compile(model)
    scheduler = diffusers.DDIMScheduler(num_train_timesteps=50)
    scheduler.set_timesteps(4)
    sample = torch.randn(2, 1, 8, 8)
    with torch.no_grad():
        for step in scheduler.timesteps:
            noise = denoise(sample, step).sample
            sample = scheduler.step(noise, step, sample).prev_sample
    return [sample]


def embeddings_of_varying_length(compile: Compile) -> list[Any]:
    """Embed texts of several lengths, with the mean over tokens that are there."""
    model = _tiny_bert("BertModel").eval()
    encode = compile(model)
    found = []
    with torch.inference_mode():
        for batch, length in ((2, 5), (3, 9), (2, 7), (4, 12), (1, 6)):
            ids = torch.randint(40, (batch, length))
            mask = (torch.arange(length) < length - torch.arange(batch)[:, None]).long()
            hidden = encode(input_ids=ids, attention_mask=mask).last_hidden_state
            pooled = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
            found.append(F.normalize(pooled, dim=-1))
    return found


ALL = {
    "gpt_training": Script(gpt_training),
    "timm_with_ema": Script(timm_with_ema, ("timm",)),
    "hugging_face_trainer": Script(hugging_face_trainer, ("transformers", "accelerate")),
    "lightning_module": Script(lightning_module, ("lightning",)),
    "diffusers_sampling": Script(diffusers_sampling, ("diffusers",)),
    "embeddings_of_varying_length": Script(embeddings_of_varying_length, ("transformers",)),
}
SCRIPTS = {
    name: script
    for name, script in ALL.items()
    if all(map(importlib.util.find_spec, script.libraries))
}
