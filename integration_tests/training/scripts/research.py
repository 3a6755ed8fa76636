"""Loops of research code: policies, meta-learning, contrastive learning, physics-informed nets."""

# mypy: ignore-errors
# The code of libraries is not typed strictly.

from __future__ import annotations

import copy
from collections import deque
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn, optim
from torch.autograd import grad
from torch.distributions import Categorical
from torch.func import functional_call

from .script import Script, data


class Environment:
    """A point that moves left or right."""

    def reset(self) -> Tensor:
        self.position = torch.zeros(2)
        self.clock = 0
        return self.position

    def step(self, action: Tensor) -> tuple[Tensor, Tensor, bool]:
        push = torch.stack([action * 2.0 - 1.0, self.position[0]])
        self.position = 0.9 * self.position + 0.1 * push
        self.clock += 1
        return self.position, 1.0 - self.position.abs().sum(), self.clock >= 5


class PolicyGradient(Script):
    def __init__(self) -> None:
        self.policy = nn.Sequential(nn.Linear(2, 8), nn.Dropout(0.1), nn.ReLU(), nn.Linear(8, 2))
        self.optimizer = optim.Adam(self.policy.parameters(), lr=1e-2)
        self.environment = Environment()
        self.gamma = 0.99
        self.running = 10.0

    def batch(self, number: int) -> tuple[Any, ...]:
        return ()

    def step(self) -> object:
        state, done = self.environment.reset(), False
        logs, rewards = [], []
        while not done:
            chosen = Categorical(logits=self.policy(state))
            action = chosen.sample()
            logs.append(chosen.log_prob(action))
            state, reward, done = self.environment.step(action)
            rewards.append(reward)

        total: Any = 0
        returns: deque[Tensor] = deque()
        for reward in rewards[::-1]:
            total = reward + self.gamma * total
            returns.appendleft(total)
        gains = torch.stack(list(returns))
        gains = (gains - gains.mean()) / (gains.std() + 1e-8)
        losses = [-log * gain for log, gain in zip(logs, gains, strict=True)]
        self.optimizer.zero_grad()
        loss = torch.stack(losses).sum()
        loss.backward()
        self.optimizer.step()
        self.running = 0.05 * sum(rewards).item() + (1 - 0.05) * self.running
        return loss.detach()


class MetaLearning(Script):
    """MAML: gradients through the steps of the inner loop."""

    def __init__(self) -> None:
        self.model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
        self.optimizer = optim.Adam(self.model.parameters(), lr=1e-2)
        self.inner_rate = 0.05

    def batch(self, number: int) -> tuple[Any, ...]:
        tasks = [data(10 * number + task, (4, 3), (4, 1), (6, 3), (6, 1)) for task in range(2)]
        return (tasks,)

    def adapted(self, x: Tensor, y: Tensor) -> dict[str, Tensor]:
        fast = dict(self.model.named_parameters())
        for _ in range(2):
            loss = F.mse_loss(functional_call(self.model, fast, (x,)), y)
            found = grad(loss, tuple(fast.values()), create_graph=True)
            pairs = zip(fast.items(), found, strict=True)
            fast = {name: value - self.inner_rate * each for (name, value), each in pairs}
        return fast

    def step(self, tasks: list[list[Tensor]]) -> object:
        self.optimizer.zero_grad()
        losses = []
        for support, wanted, query, target in tasks:
            fast = self.adapted(support, wanted)
            losses.append(F.mse_loss(functional_call(self.model, fast, (query,)), target))
        loss = torch.stack(losses).mean()
        loss.backward()
        self.optimizer.step()
        return loss.detach()


class Moco(nn.Module):
    """Momentum contrast: a queue of keys, and an encoder that follows the other one."""

    queue: Tensor
    pointer: Tensor

    def __init__(self, size: int = 16, width: int = 4) -> None:
        super().__init__()
        self.encoder_q = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, width))
        self.encoder_k = copy.deepcopy(self.encoder_q).requires_grad_(False)
        self.register_buffer("queue", F.normalize(torch.randn(width, size), dim=0))
        self.register_buffer("pointer", torch.zeros(1, dtype=torch.long))
        self.size = size

    @torch.no_grad()
    def follow(self) -> None:
        pairs = zip(self.encoder_q.parameters(), self.encoder_k.parameters(), strict=True)
        for parameter_q, parameter_k in pairs:
            parameter_k.data = parameter_k.data * 0.9 + parameter_q.data * 0.1

    @torch.no_grad()
    def enqueue(self, keys: Tensor) -> None:
        count = keys.shape[0]
        pointer = int(self.pointer)
        assert self.size % count == 0
        self.queue[:, pointer : pointer + count] = keys.T
        self.pointer[0] = (pointer + count) % self.size

    def forward(self, one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
        queries = F.normalize(self.encoder_q(one), dim=1)
        with torch.no_grad():
            self.follow()
            order = torch.randperm(other.shape[0])
            keys = F.normalize(self.encoder_k(other[order]), dim=1)[torch.argsort(order)]
        positive = torch.einsum("nc,nc->n", [queries, keys]).unsqueeze(-1)
        negative = torch.einsum("nc,ck->nk", [queries, self.queue.clone().detach()])
        logits = torch.cat([positive, negative], dim=1) / 0.07
        self.enqueue(keys)
        return logits, torch.zeros(logits.shape[0], dtype=torch.long)


class Contrastive(Script):
    def __init__(self) -> None:
        self.model = Moco()
        self.optimizer = optim.SGD(
            self.model.encoder_q.parameters(), 0.03, momentum=0.9, weight_decay=1e-4
        )

    def batch(self, number: int) -> tuple[Any, ...]:
        return tuple(data(number, (4, 6), (4, 6)))

    def step(self, one: Tensor, other: Tensor) -> object:
        logits, target = self.model(one, other)
        loss = F.cross_entropy(logits, target)
        with torch.no_grad():
            _, predicted = logits.topk(5, 1, True, True)
            correct = predicted.t().eq(target.view(1, -1).expand(5, -1))
            accuracy = [correct[:k].reshape(-1).float().sum(0) for k in (1, 5)]
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach(), accuracy


class PhysicsInformed(Script):
    """Burgers' equation: derivatives of the network with respect to its inputs in the loss."""

    def __init__(self) -> None:
        self.net = nn.Sequential(
            nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)
        )
        self.viscosity = nn.Parameter(torch.tensor(0.1))
        self.optimizer = optim.Adam([*self.net.parameters(), self.viscosity], lr=1e-3)
        self.schedule = optim.lr_scheduler.ExponentialLR(self.optimizer, 0.9)

    def batch(self, number: int) -> tuple[Any, ...]:
        return tuple(data(number, (6, 1), (6, 1), (4, 2), (4, 1)))

    def residual(self, t: Tensor, x: Tensor) -> Tensor:
        t.requires_grad_(True)
        x.requires_grad_(True)
        u = self.net(torch.cat([t, x], dim=1))
        u_t = grad(u, t, grad_outputs=torch.ones_like(u), create_graph=True)[0]
        u_x = grad(u, x, grad_outputs=torch.ones_like(u), create_graph=True)[0]
        u_xx = grad(u_x, x, grad_outputs=torch.ones_like(u_x), create_graph=True)[0]
        return u_t + u * u_x - self.viscosity * u_xx

    def step(self, t: Tensor, x: Tensor, edge: Tensor, wanted: Tensor) -> object:
        self.optimizer.zero_grad()
        physics = self.residual(t, x).pow(2).mean()
        boundary = (self.net(edge) - wanted).pow(2).mean()
        loss = physics + boundary
        loss.backward()
        self.optimizer.step()
        return loss.detach(), self.viscosity.item()

    def after(self, number: int) -> None:
        self.schedule.step()
