"""Loops that train generators and learn from two models: diffusion, GAN, distillation, teachers."""

# mypy: ignore-errors
# The code of libraries is not typed strictly.

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn, optim

from .script import Script, classes, data

# diffusers


class NoiseScheduler:
    def __init__(self, steps: int = 50) -> None:
        betas = torch.linspace(1e-4, 0.02, steps)
        self.alphas_cumprod = torch.cumprod(1.0 - betas, dim=0)
        self.config = {"num_train_timesteps": steps, "prediction_type": "epsilon"}

    def add_noise(self, samples: Tensor, noise: Tensor, timesteps: Tensor) -> Tensor:
        self.alphas_cumprod = self.alphas_cumprod.to(device=samples.device)
        alphas = self.alphas_cumprod.to(dtype=samples.dtype)[timesteps]
        kept, added = alphas**0.5, (1 - alphas) ** 0.5
        while kept.ndim < samples.ndim:
            kept, added = kept.unsqueeze(-1), added.unsqueeze(-1)
        return kept * samples + added * noise


class UNet(nn.Module):
    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(8, width), nn.SiLU(), nn.Linear(width, width))
        self.down = nn.Conv2d(2, width, 3, stride=2, padding=1)
        self.norm = nn.GroupNorm(2, width)
        self.up = nn.ConvTranspose2d(width, 2, 2, stride=2)

    def forward(self, x: Tensor, timesteps: Tensor) -> Tensor:
        half = 4
        exponent = -math.log(10000) * torch.arange(half, dtype=torch.float32) / half
        angles = timesteps[:, None].float() * torch.exp(exponent)[None]
        embedded = self.time(torch.cat([angles.sin(), angles.cos()], dim=-1))
        hidden = F.silu(self.norm(self.down(x)) + embedded[:, :, None, None])
        return x + self.up(hidden)


class EMAModel:
    """An average of parameters; the decay grows with the number of steps."""

    def __init__(self, parameters: Any, decay: float = 0.99) -> None:
        self.shadow_params = [each.clone().detach() for each in parameters]
        self.decay = decay
        self.optimization_step = 0
        self.cur_decay_value = 0.0

    def get_decay(self, step: int) -> float:
        step = max(0, step - 1)
        if step <= 0:
            return 0.0
        return max(0.0, min((1 + step) / (10 + step), self.decay))

    @torch.no_grad()
    def step(self, parameters: Any) -> None:
        parameters = list(parameters)
        self.optimization_step += 1
        decay = self.get_decay(self.optimization_step)
        self.cur_decay_value = decay
        for shadow, parameter in zip(self.shadow_params, parameters, strict=True):
            if parameter.requires_grad:
                shadow.sub_((1 - decay) * (shadow - parameter))
            else:
                shadow.copy_(parameter)


class Accelerator:
    """Gradients are synchronized in each second of the accumulated batches."""

    def __init__(self, steps: int) -> None:
        self.gradient_accumulation_steps = steps
        self.sync_gradients = True
        self.step = 0

    @contextmanager
    def accumulate(self, model: nn.Module) -> Iterator[None]:
        self.step += 1
        self.sync_gradients = self.step % self.gradient_accumulation_steps == 0
        yield

    def backward(self, loss: Tensor) -> None:
        (loss / self.gradient_accumulation_steps).backward()

    def clip_grad_norm_(self, parameters: Any, most: float) -> Tensor | None:
        if not self.sync_gradients:
            return None
        return nn.utils.clip_grad_norm_(parameters, most)


class Diffusion(Script):
    def __init__(self) -> None:
        self.accelerator = Accelerator(2)
        self.noise_scheduler = NoiseScheduler()
        self.model = UNet()
        self.ema = EMAModel(self.model.parameters())
        self.optimizer = optim.AdamW(self.model.parameters(), lr=1e-3, weight_decay=1e-2)
        self.snr_gamma = 5.0
        self.global_step = 0

    def batch(self, number: int) -> tuple[Any, ...]:
        return (data(number, (3, 2, 8, 8))[0],)

    def snr(self, timesteps: Tensor) -> Tensor:
        alphas = self.noise_scheduler.alphas_cumprod[timesteps]
        return (alphas**0.5 / (1.0 - alphas) ** 0.5) ** 2

    def step(self, clean: Tensor) -> object:
        with self.accelerator.accumulate(self.model):
            noise = torch.randn(clean.shape)
            total = self.noise_scheduler.config["num_train_timesteps"]
            timesteps = torch.randint(0, total, (clean.shape[0],)).long()
            noisy = self.noise_scheduler.add_noise(clean, noise, timesteps)
            predicted = self.model(noisy, timesteps)
            snr = self.snr(timesteps)
            capped = torch.stack([snr, self.snr_gamma * torch.ones_like(timesteps)], dim=1)
            weights = capped.min(dim=1)[0] / snr
            loss = F.mse_loss(predicted.float(), noise.float(), reduction="none")
            loss = (loss.mean(dim=list(range(1, len(loss.shape)))) * weights).mean()
            self.accelerator.backward(loss)
            self.accelerator.clip_grad_norm_(self.model.parameters(), 1.0)
            if self.accelerator.sync_gradients:
                self.optimizer.step()
                self.optimizer.zero_grad()
        if self.accelerator.sync_gradients:
            self.ema.step(self.model.parameters())
            self.global_step += 1
        return loss.detach()


# A generator and a discriminator


class Gan(Script):
    def __init__(self) -> None:
        self.generator = nn.Sequential(
            nn.ConvTranspose2d(3, 4, 2), nn.BatchNorm2d(4), nn.ReLU(True), nn.Conv2d(4, 1, 1)
        )
        self.discriminator = nn.Sequential(
            nn.Conv2d(1, 4, 2), nn.LeakyReLU(0.2, inplace=True), nn.Flatten(), nn.Linear(4, 1)
        )
        betas = (0.5, 0.999)
        self.optimizer_g = optim.Adam(self.generator.parameters(), lr=2e-3, betas=betas)
        self.optimizer_d = optim.Adam(self.discriminator.parameters(), lr=2e-3, betas=betas)
        self.criterion = nn.BCEWithLogitsLoss()
        self.losses_g: list[float] = []

    def batch(self, number: int) -> tuple[Any, ...]:
        return (data(number, (5, 1, 2, 2))[0],)

    def step(self, real: Tensor) -> object:
        size = real.size(0)
        self.discriminator.zero_grad()
        label = torch.full((size,), 1.0)
        error_real = self.criterion(self.discriminator(real).view(-1), label)
        error_real.backward()
        noise = torch.randn(size, 3, 1, 1)
        fake = self.generator(noise)
        label.fill_(0.0)
        error_fake = self.criterion(self.discriminator(fake.detach()).view(-1), label)
        error_fake.backward()
        self.optimizer_d.step()
        self.generator.zero_grad()
        label.fill_(1.0)
        error_g = self.criterion(self.discriminator(fake).view(-1), label)
        error_g.backward()
        self.optimizer_g.step()
        self.losses_g.append(error_g.item())
        return (error_real + error_fake).detach()


# A teacher that is an average of its student


class MeanTeacher(Script):
    def __init__(self) -> None:
        self.student = nn.Sequential(
            nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 4)
        )
        self.teacher = copy.deepcopy(self.student)
        for parameter in self.teacher.parameters():
            parameter.detach_()
        self.optimizer = optim.SGD(self.student.parameters(), 0.1, 0.9, nesterov=True)
        self.global_step = 0

    def batch(self, number: int) -> tuple[Any, ...]:
        target = classes(number, 4, 8)
        target[4:] = -1
        return data(number, (8, 6))[0], target

    def consistency_weight(self) -> float:
        phase = 1.0 - min(self.global_step, 10) / 10
        return 2.0 * math.exp(-5.0 * phase * phase)

    def step(self, x: Tensor, target: Tensor) -> object:
        noisy = x + 0.1 * torch.randn_like(x)
        scores = self.student(x)
        with torch.no_grad():
            taught = self.teacher(noisy)
        labelled = F.cross_entropy(scores, target, ignore_index=-1, reduction="sum") / len(x)
        squared = F.mse_loss(scores.softmax(1), taught.softmax(1))
        loss = labelled + self.consistency_weight() * squared
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.global_step += 1
        alpha = min(1 - 1 / (self.global_step + 1), 0.99)
        pairs = zip(self.teacher.parameters(), self.student.parameters(), strict=True)
        for average, parameter in pairs:
            average.data.mul_(alpha).add_(parameter.data, alpha=1 - alpha)
        return loss.detach()


# Distillation


class Features:
    """What forward hooks have stored, by the name of the layer."""

    def __init__(self, model: nn.Module, names: list[str]) -> None:
        self.values: dict[str, Tensor] = {}
        for name, module in model.named_modules():
            if name in names:
                module.register_forward_hook(self.hook(name))

    def hook(self, name: str) -> Any:
        def store(module: nn.Module, args: Any, output: Tensor) -> None:
            self.values[name] = output

        return store


class Distillation(Script):
    def __init__(self) -> None:
        layers = nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 4)
        self.teacher = nn.Sequential(*layers).eval().requires_grad_(False)
        self.student = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 4))
        self.projection = nn.Linear(4, 12)
        self.taught = Features(self.teacher, ["0"])
        self.learned = Features(self.student, ["0"])
        trained = [*self.student.parameters(), *self.projection.parameters()]
        self.optimizer = optim.RMSprop(trained, lr=1e-3)
        self.temperature = 2.0

    def batch(self, number: int) -> tuple[Any, ...]:
        return data(number, (8, 6))[0], classes(number, 4, 8)

    def step(self, x: Tensor, y: Tensor) -> object:
        self.student.train()
        with torch.no_grad():
            soft = F.softmax(self.teacher(x) / self.temperature, dim=-1)
        logits = self.student(x)
        scaled = F.log_softmax(logits / self.temperature, dim=-1)
        kd = F.kl_div(scaled, soft, reduction="batchmean") * self.temperature**2
        feature = F.mse_loss(self.projection(self.learned.values["0"]), self.taught.values["0"])
        loss = 0.5 * kd + 0.5 * F.cross_entropy(logits, y) + 0.1 * feature
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        hits = (logits.argmax(1) == y).sum().item()
        self.taught.values.clear()
        self.learned.values.clear()
        return loss.detach(), hits / len(y)
