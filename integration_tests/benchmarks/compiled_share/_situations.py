"""Training steps of plain torch: parametrizations, hooks, checkpoints, custom operators,
optimizers, steps with several models."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from integration_tests.benchmarks.compiled_share._step import (
    Compiled,
    classes,
    classifier,
    loss_of,
    training,
    whole_step,
)
from integration_tests.benchmarks.real_models._workload import Program, Workload, always


def _perceptron(width: int = 16, depth: int = 3) -> nn.Sequential:
    layers = [nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(depth)]
    return nn.Sequential(*layers, nn.Linear(width, 4))


class _Block(nn.Module):
    """A block of a transformer that counts its calls."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.feed = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )
        self.calls = 0

    def forward(self, x: Tensor) -> Any:
        self.calls += 1
        x = x + self.attention(x, x, x, need_weights=False)[0]
        return x + self.feed(self.norm(x))


def _parametrized(parametrize: Callable[[nn.Module], nn.Module]) -> Program:
    layers = [nn.Sequential(parametrize(nn.Linear(16, 16)), nn.ReLU()) for _ in range(3)]
    model = nn.Sequential(*layers, nn.Linear(16, 4)).train()
    return loss_of(classifier(model), [model], torch.randn(8, 16), classes(8))


def _jagged_attention() -> Program:
    """Attention over sequences of several lengths, as jagged tensors."""
    parts, leave = nn.ModuleList(nn.Linear(16, 16) for _ in "qkv"), nn.Linear(16, 16)

    def heads(x: Tensor) -> Any:
        found: Any = x
        return found.unflatten(-1, [2, 8]).transpose(1, 2)

    def attention(values: Tensor, offsets: Tensor) -> Any:
        x = torch.nested.nested_tensor_from_jagged(values, offsets)
        q, k, v = (heads(part(x)) for part in parts)
        found = nn.functional.scaled_dot_product_attention(q, k, v)
        return leave(found.transpose(1, 2).flatten(-2)).values().square().mean()

    values, offsets = torch.randn(12, 16), torch.tensor([0, 3, 7, 12])
    return loss_of(attention, [parts, leave], values, offsets)


def _jagged_result() -> Program:
    """A layer that returns a jagged tensor, whose loss is computed outside."""
    layer = nn.Linear(16, 16)

    def driver(compiled: Compiled) -> Compiled:
        def step(parts: list[Tensor]) -> Any:
            layer.zero_grad()
            found = compiled(parts).values()
            found.square().mean().backward()
            return found.detach(), [each.grad for each in layer.parameters()]

        return step

    def run(parts: list[Tensor]) -> Any:
        nested = torch.nested.as_nested_tensor(parts, layout=torch.jagged)
        return torch.relu(nn.functional.linear(nested, layer.weight, layer.bias))

    return Program(run, always([torch.randn(3, 16), torch.randn(5, 16)]), driver)


def _checkpointed_stack() -> Program:
    """Checkpointed blocks that count their calls and collect auxiliary losses."""
    blocks = nn.ModuleList(_Block() for _ in range(3))
    head = nn.Linear(16, 4)

    def loss(x: Tensor, wanted: Tensor) -> Tensor:
        extra: list[Tensor] = []

        def run(block: nn.Module, x: Tensor) -> Any:
            y = block(x)
            extra.append(y.detach().abs().mean())
            return y

        for block in blocks:
            x = checkpoint(run, block, x, use_reentrant=False)
        return nn.functional.cross_entropy(head(x.mean(1)), wanted) + sum(extra)

    return loss_of(loss, [blocks, head], torch.randn(2, 6, 16), classes(2))


def _checkpointed_plainly() -> Program:
    blocks = nn.ModuleList(
        nn.TransformerEncoderLayer(16, 2, 32, 0.1, batch_first=True) for _ in "12"
    )

    def run(x: Tensor) -> Tensor:
        for block in blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return x.square().mean()

    return loss_of(run, [blocks.train()], torch.randn(2, 6, 16))


def _adversarial() -> Program:
    """A step of a GAN: both networks, both optimizers, two backward passes."""
    maker, judge = (
        _perceptron(),
        nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1)),
    )
    of_maker = torch.optim.Adam(maker.parameters(), lr=1e-3)
    of_judge = torch.optim.Adam(judge.parameters(), lr=1e-3)
    score = nn.BCEWithLogitsLoss()

    def step(real: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        ones, zeros = torch.ones(real.shape[0], 1), torch.zeros(real.shape[0], 1)
        fake = maker(noise)

        of_judge.zero_grad()
        loss_of_judge = score(judge(real), ones) + score(judge(fake.detach()), zeros)
        loss_of_judge.backward()
        of_judge.step()

        of_maker.zero_grad()
        loss_of_maker = score(judge(fake), ones)
        loss_of_maker.backward()
        of_maker.step()
        return loss_of_judge.detach(), loss_of_maker.detach()

    return whole_step(step, [maker, judge], torch.randn(8, 4), torch.randn(8, 16))


def _gradient_penalty() -> Program:
    """The critic of a Wasserstein GAN with a penalty for its gradient."""
    critic = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))

    def loss(real: Tensor, fake: Tensor, mix: Tensor) -> Any:
        between = (mix * real + (1 - mix) * fake).requires_grad_()
        scores = critic(between)
        (gradient,) = torch.autograd.grad(scores.sum(), between, create_graph=True)
        penalty = (gradient.norm(2, dim=1) - 1).square().mean()
        return critic(fake).mean() - critic(real).mean() + 10 * penalty

    real, fake = torch.randn(2, 8, 8).unbind()
    return loss_of(loss, [critic], real, fake, torch.rand(8, 1))


def _hooked_activations() -> Program:
    """Gradients of activations are clipped by hooks, also of one that was used before."""
    layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))
    head = nn.Linear(16, 4)

    def loss(x: Tensor, wanted: Tensor) -> Tensor:
        kept = []
        for layer in layers:
            x = layer(x).relu()
            kept.append(x * 2)
            x.register_hook(lambda gradient: gradient.clamp(-0.1, 0.1))  # type: ignore[no-untyped-call]
        return nn.functional.cross_entropy(head(x), wanted) + sum(each.mean() for each in kept)

    return loss_of(loss, [layers, head], torch.randn(8, 16), classes(8))


def _hooked_modules() -> Program:
    """Forward hooks that record activations, as tools for looking into models register them."""
    model, seen = _perceptron(), {}

    def record(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, output: Tensor) -> None:
            seen[name] = output.detach().abs().mean()

        return hook

    for name, layer in model.named_children():
        layer.register_forward_hook(record(name))
    return loss_of(classifier(model), [model], torch.randn(8, 16), classes(8))


def _custom_operator() -> Any:
    """Return an operator of this benchmark, defined once in a process."""
    namespace = torch.ops.stator_compiled_share
    if hasattr(namespace, "scaled"):
        return namespace.scaled

    @torch.library.custom_op("stator_compiled_share::scaled", mutates_args=())
    def scaled(x: Tensor) -> Tensor:
        return x * 2

    scaled.register_fake(torch.empty_like)
    scaled.register_autograd(lambda ctx, gradient: gradient * 2)
    return namespace.scaled


def _operator_in_try() -> Program:
    """An operator of another library, with a plain way for where it fails."""
    operator, model = _custom_operator(), _perceptron()
    head = nn.Linear(4, 4)

    def loss(x: Tensor, wanted: Tensor) -> Tensor:
        y = model(x)
        try:
            y = operator(y)
        except RuntimeError:
            y = y * 2
        return nn.functional.cross_entropy(head(y), wanted)

    return loss_of(loss, [model, head], torch.randn(8, 16), classes(8))


def _masked_write() -> Program:
    """Masked positions are overwritten in place, as in training of wav2vec2."""
    first, second, embedding = nn.Linear(16, 16), nn.Linear(16, 4), nn.Parameter(torch.randn(16))
    mask = torch.tensor([[True, False, False], [False, True, True]])
    holder = nn.ParameterList([embedding])

    def loss(x: Tensor) -> Any:
        hidden = first(x)
        hidden[mask] = embedding
        return second(hidden.relu()).square().mean()

    return loss_of(loss, [first, second, holder], torch.randn(2, 3, 16))


def _optimizer_step(make: Callable[..., torch.optim.Optimizer], **options: Any) -> Program:
    """``step`` of an optimizer, compiled by itself."""
    model = _perceptron(depth=4)
    optimizer = make(model.parameters(), **options)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)

    def step() -> None:
        optimizer.step()

    return whole_step(step, [model])


def _whole_step(clip: bool = False, averaged: bool = False) -> Program:
    """Forward, loss, backward and AdamW as one compiled function."""
    model, kept = _perceptron(), _perceptron()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step(x: Tensor, wanted: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), wanted)
        loss.backward()  # type: ignore[no-untyped-call]
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if averaged:
            with torch.no_grad():
                for slow, quick in zip(kept.parameters(), model.parameters(), strict=True):
                    slow.lerp_(quick, 0.1)
        return loss.detach()

    return whole_step(step, [model, kept], torch.randn(8, 16), classes(8))


def _accumulated() -> Program:
    """Gradients of several batches are added up before the step."""
    model = _perceptron()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(batches: Tensor, wanted: Tensor) -> Tensor:
        optimizer.zero_grad()
        total = torch.zeros(())
        for x in batches:
            loss = nn.functional.cross_entropy(model(x), wanted) / len(batches)
            loss.backward()  # type: ignore[no-untyped-call]
            total = total + loss.detach()
        optimizer.step()
        return total

    return whole_step(step, [model], torch.randn(3, 8, 16), classes(8))


def _mixed_precision() -> Program:
    model = _perceptron()

    def loss(x: Tensor, wanted: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return nn.functional.cross_entropy(model(x).float(), wanted)

    return loss_of(loss, [model], torch.randn(8, 16), classes(8))


def _distilled() -> Program:
    """A student learns from a teacher that runs without gradients."""
    teacher, student = _perceptron(depth=4).eval(), _perceptron(depth=2)

    def loss(x: Tensor) -> Tensor:
        with torch.no_grad():
            wanted = teacher(x).softmax(-1)
        return nn.functional.kl_div(student(x).log_softmax(-1), wanted, reduction="batchmean")

    return loss_of(loss, [student], torch.randn(8, 16))


def _recurrent() -> Program:
    model, head = nn.LSTM(16, 16, 2, batch_first=True, dropout=0.1), nn.Linear(16, 4)

    def loss(x: Tensor, wanted: Tensor) -> Tensor:
        found, _ = model(x)
        return nn.functional.cross_entropy(head(found[:, -1]), wanted)

    return loss_of(loss, [model.train(), head], torch.randn(2, 6, 16), classes(2))


def _saved_tensors() -> Program:
    """Saved tensors go through hooks that copy what is large."""
    model = _perceptron()

    def loss(x: Tensor, wanted: Tensor) -> Tensor:
        hooks = torch.autograd.graph.saved_tensors_hooks(
            lambda saved: saved.clone() if saved.numel() > 16 else saved, lambda kept: kept
        )
        with hooks if x.shape[0] == 8 else contextlib.nullcontext():
            return nn.functional.cross_entropy(model(x), wanted)

    return loss_of(loss, [model], torch.randn(8, 16), classes(8))


def _torch_transformer() -> Program:
    model = nn.Transformer(32, 4, 2, 2, 64, dropout=0.1, batch_first=True)
    return training(model, torch.randn(2, 12, 32), torch.randn(2, 8, 32))


def _per_sample() -> Program:
    """Gradients of each sample by ``torch.func``."""
    model = _perceptron(depth=1)
    parameters = {name: each.detach() for name, each in model.named_parameters()}

    def loss(parameters: dict[str, Tensor], x: Tensor, wanted: Tensor) -> Tensor:
        found = torch.func.functional_call(model, parameters, (x[None],))
        return nn.functional.cross_entropy(found, wanted[None])

    per_sample = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))
    return Program(
        lambda x, wanted: per_sample(parameters, x, wanted),
        always(torch.randn(4, 16), classes(4)),
    )


_OPTIMIZERS: dict[str, Callable[[], Program]] = {
    "adamw step": lambda: _optimizer_step(torch.optim.AdamW, lr=1e-3),
    "sgd step with momentum": lambda: _optimizer_step(torch.optim.SGD, lr=0.1, momentum=0.9),
    "rmsprop step": lambda: _optimizer_step(torch.optim.RMSprop, lr=1e-3),
}

_STEPS: dict[str, Callable[[], Program]] = {
    "weight_norm, training": lambda: _parametrized(nn.utils.parametrizations.weight_norm),
    "spectral_norm, training": lambda: _parametrized(nn.utils.parametrizations.spectral_norm),
    "jagged attention, training": _jagged_attention,
    "jagged result, training": _jagged_result,
    "checkpointed stack with effects, training": _checkpointed_stack,
    "checkpointed stack, training": _checkpointed_plainly,
    "gan step": _adversarial,
    "gradient penalty, training": _gradient_penalty,
    "hooks on activations, training": _hooked_activations,
    "forward hooks that record, training": _hooked_modules,
    "custom operator in a try, training": _operator_in_try,
    "masked write, training": _masked_write,
    "whole step with adamw": _whole_step,
    "whole step, clipped, averaged": lambda: _whole_step(True, True),
    "whole step, accumulated gradients": _accumulated,
    "mixed precision, training": _mixed_precision,
    "distillation, training": _distilled,
    "lstm, training": _recurrent,
    "saved tensors in hooks, training": _saved_tensors,
    "torch transformer, training": _torch_transformer,
}

SITUATIONS = (
    *(Workload(name, make, gradients=True) for name, make in _STEPS.items()),
    *(Workload(name, make, gradients=True) for name, make in _OPTIMIZERS.items()),
    Workload("gradients per sample", _per_sample),
)
