"""Loops of libraries that train on labelled data: timm, transformers, Lightning, LoRA."""

# mypy: ignore-errors
# The code of libraries is not typed strictly.

from __future__ import annotations

import copy
import math
import random
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, fields
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn, optim
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.checkpoint import checkpoint

from .script import Script, classes, data

# timm


class DropPath(nn.Module):
    """Stochastic depth per sample."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        if self.probability == 0.0 or not self.training:
            return x
        keep = 1 - self.probability
        shape = (x.shape[0],) + (1,) * (x.ndim - 1)
        mask = x.new_empty(shape).bernoulli_(keep)
        if keep > 0.0:
            mask.div_(keep)
        return x * mask


class ConvBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.act = nn.ReLU(inplace=True)
        self.drop_path = DropPath(0.1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.drop_path(self.act(self.norm(self.conv(x))))


def conv_net() -> nn.Module:
    body = [nn.Conv2d(3, 4, 3), ConvBlock(4), ConvBlock(4)]
    return nn.Sequential(*body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5))


class AverageMeter:
    def __init__(self) -> None:
        self.val = self.avg = self.sum = self.count = 0.0

    def update(self, val: float, n: int = 1) -> None:
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


class NativeScaler:
    """Scale, clip and step as timm's wrapper of GradScaler does."""

    def __init__(self) -> None:
        self.scaler = torch.amp.GradScaler("cpu", init_scale=8.0)

    def __call__(
        self, loss: Tensor, optimizer: Optimizer, clip_grad: float, parameters: Any
    ) -> None:
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(parameters, clip_grad)
        self.scaler.step(optimizer)
        self.scaler.update()


class ModelEma(nn.Module):
    """An average of the weights whose decay grows with the number of updates."""

    def __init__(self, model: nn.Module, decay: float = 0.99) -> None:
        super().__init__()
        self.module = copy.deepcopy(model).eval()
        self.decay = decay

    def decay_at(self, step: int) -> float:
        return min(self.decay, (1 + step) / (10 + step))

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        decay = self.decay_at(step)
        averages, values = [], []
        for mine, its in zip(
            self.module.state_dict().values(), model.state_dict().values(), strict=True
        ):
            if mine.is_floating_point():
                averages.append(mine)
                values.append(its)
            else:
                mine.copy_(its)
        torch._foreach_lerp_(averages, values, weight=1.0 - decay)


class Mixup:
    """Mix each batch with its reverse, by a number that is drawn anew."""

    def __init__(self, alpha: float, smoothing: float, count: int) -> None:
        self.alpha = alpha
        self.smoothing = smoothing
        self.count = count

    def one_hot(self, target: Tensor) -> Tensor:
        off = self.smoothing / self.count
        full = torch.full((target.shape[0], self.count), off)
        return full.scatter_(1, target.view(-1, 1), 1.0 - self.smoothing + off)

    def __call__(self, x: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        lam = random.betavariate(self.alpha, self.alpha)
        flipped = x.flip(0).mul_(1.0 - lam)
        x.mul_(lam).add_(flipped)
        one, other = self.one_hot(target), self.one_hot(target.flip(0))
        return x, one * lam + other * (1.0 - lam)


class Timm(Script):
    def __init__(self) -> None:
        self.model = conv_net()
        decayed = [each for each in self.model.parameters() if each.ndim > 1]
        others = [each for each in self.model.parameters() if each.ndim <= 1]
        groups = [
            {"params": others, "weight_decay": 0.0},
            {"params": decayed, "weight_decay": 0.05},
        ]
        self.optimizer = optim.AdamW(groups, lr=1e-3)
        self.loss_scaler = NativeScaler()
        self.ema = ModelEma(self.model)
        self.mixup = Mixup(0.2, 0.1, 5)
        self.losses = AverageMeter()
        self.updates = 0

    def batch(self, number: int) -> tuple[Any, ...]:
        return data(number, (6, 3, 8, 8))[0], classes(number, 5, 6)

    def step(self, x: Tensor, target: Tensor) -> object:
        self.model.train()
        x, target = self.mixup(x, target)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            output = self.model(x)
            loss = torch.sum(-target * F.log_softmax(output, dim=-1), dim=-1).mean()
        self.loss_scaler(loss, self.optimizer, 1.0, self.model.parameters())
        self.optimizer.zero_grad()
        self.updates += 1
        self.ema.update(self.model, step=self.updates)
        self.losses.update(loss.item() * 1, x.size(0))
        return loss.detach()

    def after(self, number: int) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = 0.5e-3 * (1 + math.cos(math.pi * number / 20))


# transformers


class ModelOutput(OrderedDict[str, Any]):
    """A dataclass that is a dict of the fields that are not None."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None:
                self[each.name] = value

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key) if isinstance(key, str) else self.to_tuple()[key]

    def to_tuple(self) -> tuple[Any, ...]:
        return tuple(self[key] for key in self)


@dataclass
class CausalOutput(ModelOutput):
    loss: Tensor | None = None
    logits: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None


class CausalModel(nn.Module):
    def __init__(self, vocabulary: int = 11, width: int = 8) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.mix = nn.TransformerEncoderLayer(width, 2, 16, 0.1, batch_first=True)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.embed.weight

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor | None = None
    ) -> CausalOutput:
        size = input_ids.shape[1]
        causal = torch.ones(size, size, dtype=torch.bool).triu(1)
        hidden = self.mix(self.embed(input_ids), causal, attention_mask == 0)
        logits = self.head(hidden)
        loss = None
        if labels is not None:
            shifted = logits[:, :-1].flatten(0, 1)
            loss = F.cross_entropy(shifted, labels[:, 1:].flatten(), ignore_index=-100)
        return CausalOutput(loss=loss, logits=logits)


@dataclass
class TrainerState:
    global_step: int = 0
    epoch: float = 0.0
    log_history: list[dict[str, float]] = field(default_factory=list)


@dataclass
class TrainerControl:
    should_log: bool = False
    should_save: bool = False


class Callbacks:
    """Call a method of each callback by the name of the event."""

    def __init__(self, callbacks: list[Any]) -> None:
        self.callbacks = callbacks

    def call_event(self, event: str, state: TrainerState, control: TrainerControl) -> Any:
        for callback in self.callbacks:
            result = getattr(callback, event)(state, control)
            if result is not None:
                control = result
        return control


class FlowCallback:
    def on_step_begin(self, state: TrainerState, control: TrainerControl) -> None:
        control.should_log = False

    def on_step_end(self, state: TrainerState, control: TrainerControl) -> TrainerControl:
        control.should_log = state.global_step % 3 == 0
        return control


class Trainer(Script):
    def __init__(self) -> None:
        self.model = CausalModel()
        self.optimizer = optim.AdamW(self.model.parameters(), lr=5e-3)
        self.schedule = LambdaLR(self.optimizer, lambda step: min(1.0, (step + 1) / 4))
        self.trainer_state = TrainerState()
        self.control = TrainerControl()
        self.callbacks = Callbacks([FlowCallback()])
        self.tr_loss = torch.tensor(0.0)
        self.accumulation_steps = 2

    def batch(self, number: int) -> tuple[Any, ...]:
        batches = []
        for part in range(self.accumulation_steps):
            ids = classes(2 * number + part, 11, 3, 7)
            mask = torch.ones_like(ids)
            mask[0, -2:] = 0
            labels = ids.masked_fill(mask == 0, -100)
            batches.append({"input_ids": ids, "attention_mask": mask, "labels": labels})
        return (batches,)

    def autocast(self) -> AbstractContextManager[Any]:
        return torch.autocast("cpu", dtype=torch.bfloat16)

    def compute_loss(self, inputs: dict[str, Tensor]) -> Tensor:
        outputs = self.model(**inputs)
        loss: Tensor = outputs["loss"] if isinstance(outputs, dict) else outputs[0]
        return loss

    def training_step(self, inputs: dict[str, Tensor]) -> Tensor:
        self.model.train()
        with self.autocast():
            loss = self.compute_loss(inputs)
        loss = loss / self.accumulation_steps
        loss.backward()
        return loss.detach()

    def step(self, batches: list[dict[str, Tensor]]) -> object:
        for i, inputs in enumerate(batches):
            if i % self.accumulation_steps == 0:
                self.control = self.callbacks.call_event(
                    "on_step_begin", self.trainer_state, self.control
                )
            last = self.training_step(inputs)
            bad = torch.isnan(last) | torch.isinf(last)
            self.tr_loss = self.tr_loss + torch.where(bad, self.tr_loss, last)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.model.zero_grad()
        self.trainer_state.global_step += 1
        self.control = self.callbacks.call_event("on_step_end", self.trainer_state, self.control)
        return norm

    def after(self, number: int) -> None:
        self.schedule.step()
        if self.control.should_log:
            self.trainer_state.log_history.append({"loss": self.tr_loss.item()})
            self.tr_loss -= self.tr_loss


# Lightning


class LightningModule(nn.Module):
    """A module with hooks of the loop and values that it logs."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.2), nn.Tanh(), nn.Linear(8, 1))
        self.logged: dict[str, Tensor] = {}
        self.current_function: str | None = None

    def log(self, name: str, value: Tensor) -> None:
        self.logged[name] = value.detach()

    def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> dict[str, Tensor]:
        x, y = batch
        loss = F.mse_loss(self.net(x), y)
        self.log("train_loss", loss)
        return {"loss": loss}

    def on_before_zero_grad(self, optimizer: Optimizer) -> None:
        self.log("weight", self.net[0].weight.norm())

    def on_before_optimizer_step(self, optimizer: Optimizer) -> None:
        norms = [each.grad.norm() for each in self.parameters() if each.grad is not None]
        self.log("norm", torch.stack(norms).norm())

    def configure_optimizers(self) -> dict[str, Any]:
        optimizer = optim.SGD(self.parameters(), lr=0.05, momentum=0.9)
        schedule = optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
        return {"optimizer": optimizer, "lr_scheduler": schedule}


class Closure:
    """The closure that the loop hands to the optimizer: the step of training inside."""

    def __init__(self, step: Callable[[], Tensor], zero: Any, backward: Any) -> None:
        self.step = step
        self.zero_grad = zero
        self.backward = backward
        self.result: Tensor | None = None

    def __call__(self) -> Tensor:
        loss = self.step()
        self.zero_grad()
        self.backward(loss)
        self.result = loss.detach()
        return loss


class Lightning(Script):
    def __init__(self) -> None:
        self.module = LightningModule()
        made = self.module.configure_optimizers()
        self.optimizer: Optimizer = made["optimizer"]
        self.schedule = made["lr_scheduler"]
        self.index = 0

    def batch(self, number: int) -> tuple[Any, ...]:
        return (tuple(data(number, (4, 6), (4, 1))),)

    @contextmanager
    def profile(self, name: str) -> Iterator[None]:
        self.module.current_function = name
        try:
            yield
        finally:
            self.module.current_function = None

    def call_hook(self, name: str, *args: Any) -> Any:
        hook = getattr(self.module, name, None)
        if not callable(hook):
            return None
        with self.profile(f"[LightningModule]{name}"):
            return hook(*args)

    def step(self, batch: tuple[Tensor, Tensor]) -> object:
        def training_step() -> Tensor:
            loss: Tensor = self.call_hook("training_step", batch, self.index)["loss"]
            return loss

        def zero_grad() -> None:
            self.call_hook("on_before_zero_grad", self.optimizer)
            self.optimizer.zero_grad()

        def backward(loss: Tensor) -> None:
            self.call_hook("on_before_backward", loss)
            loss.backward()
            self.call_hook("on_before_optimizer_step", self.optimizer)

        closure = Closure(training_step, zero_grad, backward)
        self.optimizer.step(closure)
        self.index += 1
        return closure.result

    def after(self, number: int) -> None:
        self.schedule.step()


# LoRA


class LoraLinear(nn.Module):
    """A frozen layer and adapters of low rank by name, as in peft."""

    def __init__(self, base: nn.Linear, rank: int, alpha: float, dropout: float) -> None:
        super().__init__()
        self.base_layer = base
        name = "default"
        self.lora_A = nn.ModuleDict({name: nn.Linear(base.in_features, rank, bias=False)})
        self.lora_B = nn.ModuleDict({name: nn.Linear(rank, base.out_features, bias=False)})
        self.lora_dropout = nn.ModuleDict({name: nn.Dropout(dropout)})
        self.scaling = {name: alpha / rank}
        self.active_adapters = [name]
        self.merged = False

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if self.merged:
            return self.base_layer(x, *args, **kwargs)
        result = self.base_layer(x, *args, **kwargs)
        kind = result.dtype
        for adapter in self.active_adapters:
            if adapter not in self.lora_A:
                continue
            down, up = self.lora_A[adapter], self.lora_B[adapter]
            x = x.to(down.weight.dtype)
            dropped = self.lora_dropout[adapter](x)
            result = result + up(down(dropped)) * self.scaling[adapter]
        return result.to(kind)


class LoraModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])
        self.norm = nn.LayerNorm(8)
        self.requires_grad_(False)
        for i, layer in enumerate(self.layers):
            if i != 1:
                self.layers[i] = LoraLinear(layer, 2, 4.0, 0.1)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + checkpoint(lambda x, layer=layer: layer(self.norm(x)), x, use_reentrant=False)
        return x


class Lora(Script):
    def __init__(self) -> None:
        self.model = LoraModel()
        trained = [each for each in self.model.parameters() if each.requires_grad]
        self.optimizer = optim.AdamW(trained, lr=1e-2)
        self.accumulated = nullcontext()

    def batch(self, number: int) -> tuple[Any, ...]:
        return data(number, (4, 8), (4, 8))

    def step(self, x: Tensor, y: Tensor) -> object:
        with self.accumulated, torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.mse_loss(self.model(x).float(), y)
        self.optimizer.zero_grad()
        loss.backward()
        trained = [each for each in self.model.parameters() if each.requires_grad]
        nn.utils.clip_grad_value_(trained, 0.5)
        self.optimizer.step()
        return loss.item()
