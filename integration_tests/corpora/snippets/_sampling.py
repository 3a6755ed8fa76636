"""Decoding, samplers, diffusion and schedules."""

# mypy: ignore-errors

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from integration_tests.corpora.snippets._collection import Collection

sampling = Collection("samplers and schedules")


@sampling.add(lambda d: (d.normal(d.batch, 9),))
def greedy(logits: Tensor) -> Tensor:
    return logits.argmax(dim=-1, keepdim=True)


@sampling.add(lambda d: (d.normal(d.batch, 9), (0.7, 0.9, 1.0)[d.call]))
def temperature_sampling(logits: Tensor, temperature: float) -> Tensor:
    return torch.multinomial(F.softmax(logits / temperature, dim=-1), num_samples=1)


@sampling.add(lambda d: (d.normal(d.batch, 9), 3))
def top_k_filter(logits: Tensor, k: int) -> Tensor:
    kept, _ = torch.topk(logits, min(k, logits.size(-1)))
    out = logits.clone()
    out[out < kept[:, [-1]]] = -float("Inf")
    return out


@sampling.add(lambda d: (d.normal(d.batch, 9),))
def nucleus_filter(logits: Tensor, top_p: float = 0.8) -> Tensor:
    ordered, index = torch.sort(logits, descending=True)
    cumulative = torch.cumsum(F.softmax(ordered, dim=-1), dim=-1)
    remove = cumulative > top_p
    remove[..., 1:] = remove[..., :-1].clone()
    remove[..., 0] = 0
    return logits.masked_fill(remove.scatter(1, index, remove), -float("Inf"))


@sampling.add(lambda d: (d.normal(d.batch, 9), d.integers(9, d.batch, 4)))
def repetition_penalty(logits: Tensor, seen: Tensor, penalty: float = 1.2) -> Tensor:
    score = torch.gather(logits, 1, seen)
    score = torch.where(score < 0, score * penalty, score / penalty)
    return logits.scatter(1, seen, score)


@sampling.add(lambda d: (d.normal(d.batch, 3, 7).log_softmax(-1), d.normal(d.batch, 3)))
def beam_search_step(log_probs: Tensor, scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    batch, beams, vocab = log_probs.shape
    total = (scores.unsqueeze(-1) + log_probs).view(batch, beams * vocab)
    best, flat = total.topk(beams, dim=1, largest=True, sorted=True)
    return best, torch.div(flat, vocab, rounding_mode="floor"), flat % vocab


@dataclass
class Beams:
    tokens: Tensor
    scores: Tensor

    def reorder(self, origin: Tensor) -> Beams:
        rows = torch.arange(origin.shape[0])[:, None]
        return Beams(self.tokens[rows, origin], self.scores.gather(1, origin))


@sampling.add(
    lambda d: (Beams(d.integers(9, d.batch, 3, 4), d.normal(d.batch, 3)), d.integers(3, d.batch, 3))
)
def reorder_beams(beams: Beams, origin: Tensor) -> Beams:
    return beams.reorder(origin)


@sampling.add(lambda d: (d.integers(9, d.batch, 3), d.normal(9, 9), [F.tanh, torch.relu]))
def logits_processors(
    tokens: Tensor, table: Tensor, processors: list[Callable[[Tensor], Tensor]]
) -> Tensor:
    for _ in range(3):
        logits = table[tokens[:, -1]]
        for process in processors:
            logits = process(logits)
        tokens = torch.cat([tokens, logits.argmax(-1, keepdim=True)], dim=-1)
    return tokens


@sampling.add(lambda d: (d.normal(d.batch, 6),))
def gumbel_softmax(logits: Tensor, tau: float = 0.5) -> Tensor:
    gumbels = -torch.empty_like(logits).exponential_().log()
    soft = ((logits + gumbels) / tau).softmax(-1)
    hard = torch.zeros_like(logits).scatter_(-1, soft.max(-1, keepdim=True)[1], 1.0)
    return hard - soft.detach() + soft


@sampling.add(lambda d: (d.normal(d.batch, 3, 4, 4), d.integers(10, d.batch)))
def diffusion_q_sample(x: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
    betas = torch.linspace(1e-4, 0.02, 10)
    cumulative = torch.cumprod(1.0 - betas, dim=0)
    noise = torch.randn_like(x)
    a = cumulative[t].sqrt().view(-1, *([1] * (x.ndim - 1)))
    return a * x + (1 - cumulative[t]).sqrt()[:, None, None, None] * noise, noise


@sampling.add(lambda d: (d.normal(d.batch, 4), lambda x, t: x * 0.1 + t))
def ddim_loop(x: Tensor, model: Callable[[Tensor, Tensor], Tensor], steps: int = 4) -> Tensor:
    alphas = torch.linspace(0.99, 0.1, steps)
    for i in reversed(range(1, steps)):
        eps = model(x, torch.full((x.shape[0], 1), i, dtype=torch.float))
        clean = (x - (1 - alphas[i]).sqrt() * eps) / alphas[i].sqrt()
        x = alphas[i - 1].sqrt() * clean + (1 - alphas[i - 1]).sqrt() * eps
    return x


@sampling.add(lambda d: (d.normal(2 * d.batch, 4), 7.5))
def classifier_free_guidance(noise: Tensor, scale: float) -> Tensor:
    uncond, text = noise.chunk(2)
    guided = uncond + scale * (text - uncond)
    factor = text.std(dim=1, keepdim=True) / guided.std(dim=1, keepdim=True)
    return 0.7 * guided * factor + 0.3 * guided


@sampling.add(lambda d: ([0, 5, 20][d.call], d.normal(3)))
def warmup_cosine(step: int, x: Tensor) -> Tensor:
    warmup, total, base = 4, 30, 1e-2
    if step < warmup:
        lr = base * step / warmup
    else:
        lr = base * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))
    return x * lr


def _noam(dim: int, warmup: int) -> Iterator[float]:
    step = 1
    while True:
        yield dim**-0.5 * min(step**-0.5, step * warmup**-1.5)
        step += 1


@sampling.add(lambda d: (d.normal(d.batch),))
def schedule_from_a_generator(x: Tensor) -> Tensor:
    for lr, _ in zip(_noam(8, 2), range(4), strict=False):
        x = x - lr * x.sign()
    return x


@sampling.add(lambda d: (torch.nn.Linear(2, 2), 0.9 + d.call / 100))
def exponential_moving_average(model: torch.nn.Linear, decay: float) -> dict[str, Tensor]:
    shadow = {name: torch.zeros_like(p) for name, p in model.named_parameters()}
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.requires_grad:
                shadow[name].mul_(decay).add_(p.detach(), alpha=1 - decay)
    return shadow


@sampling.add(lambda d: (d.normal(6), d.normal(6), d.mask(6)))
def discounted_returns(rewards: Tensor, values: Tensor, done: Tensor) -> tuple[Tensor, Tensor]:
    advantages = torch.zeros_like(rewards)
    last = torch.zeros(())
    for t in reversed(range(len(rewards))):
        following = values[t + 1] if t + 1 < len(values) else 0.0
        delta = rewards[t] + 0.99 * following * (~done[t]) - values[t]
        advantages[t] = last = delta + 0.99 * 0.95 * (~done[t]) * last
    return advantages, advantages + values


@sampling.add(
    lambda d: (d.leaf(d.batch, 3), d.integers(3, d.batch), d.normal(d.batch), d.normal(d.batch))
)
def ppo_loss(logits: Tensor, action: Tensor, old: Tensor, advantage: Tensor) -> Tensor:
    log_prob = logits.log_softmax(-1).gather(1, action[:, None]).squeeze(1)
    ratio = torch.exp(log_prob - old)
    clipped = torch.clamp(ratio, 0.8, 1.2)
    return -torch.min(ratio * advantage, clipped * advantage).mean()


@sampling.add(lambda d: (d.normal(d.batch, 3), d.integers(3, d.batch)))
def categorical_distribution(logits: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
    dist = torch.distributions.Categorical(logits=logits, validate_args=False)
    return dist.log_prob(action), dist.entropy()


@sampling.add(lambda d: (d.normal(d.batch, 3), d.normal(d.batch, 3)))
def normal_distribution(mu: Tensor, log_std: Tensor) -> tuple[Tensor, Tensor]:
    dist = torch.distributions.Normal(mu, log_std.exp(), validate_args=False)
    sample = dist.rsample()
    prior = torch.distributions.Normal(
        torch.zeros_like(mu), torch.ones_like(mu), validate_args=False
    )
    return sample, torch.distributions.kl_divergence(dist, prior).sum(-1)
