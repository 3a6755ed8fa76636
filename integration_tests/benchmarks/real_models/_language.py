"""Language models of ``transformers`` and ``x_transformers``: one forward, decoding with caches, generation, training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from integration_tests.benchmarks.real_models._workload import Arguments, Program, Workload, always


def _zoo(name: str, training: bool = False) -> Program:
    """A model of the zoo at its full depth, with the arguments that it has there."""
    from integration_tests.models import FAMILIES, ZOO

    item = ZOO.get(name) or FAMILIES[name]
    model, call, _ = item.make()
    return Program(model.train(training), always(*call.args, **call.kwargs))


def _model(name: str) -> Any:
    from integration_tests.models import FAMILIES, ZOO

    item = ZOO.get(name) or FAMILIES[name]
    return item.make()[0]


def _tokens(length: int) -> Tensor:
    return torch.randint(3, 99, (2, length))


def _growing(name: str) -> Program:
    """Every call has one token more than the call before, up to the most that the model takes."""
    texts = [_tokens(4 + i) for i in range(60)]

    def arguments(number: int) -> Arguments:
        return (), {"input_ids": texts[number % len(texts)], "use_cache": False}

    return Program(_model(name), arguments)


def _filled_cache(model: Any, text: Tensor) -> Callable[[], Any]:
    """Return a maker of cache objects that hold the keys and values of ``text``."""
    from transformers import DynamicCache

    filled = model(input_ids=text, use_cache=True).past_key_values
    parts = [(layer.keys, layer.values) for layer in filled.layers]

    def make() -> Any:
        cache = DynamicCache(config=model.config)
        for number, (keys, values) in enumerate(parts):
            cache.update(keys, values, number)
        return cache

    return make


def _decoding(name: str) -> Program:
    """One token, with a new cache object that holds eight."""
    model = _model(name)
    make_cache = _filled_cache(model, _tokens(8))
    token = _tokens(1)

    def arguments(number: int) -> Arguments:
        return (), {"input_ids": token, "past_key_values": make_cache(), "use_cache": True}

    return Program(model, arguments)


def _greedy(model: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a driver that decodes six tokens with a new cache object."""
    from transformers import DynamicCache

    def driver(compiled: Callable[..., Any]) -> Callable[..., Any]:
        def decode(text: Tensor) -> None:
            cache = DynamicCache(config=model.config)
            for _ in range(6):
                output = compiled(input_ids=text, past_key_values=cache, use_cache=True)
                text = output.logits[:, -1:].argmax(-1)

        return decode

    return driver


def _greedy_decoding(name: str) -> Program:
    model = _model(name)
    return Program(model, always(_tokens(8)), _greedy(model))


def generation() -> Program:
    """``generate`` of a library model whose forward is compiled, which makes its own cache object in each call."""
    model = _model("gpt2")
    model.generation_config.pad_token_id = 0
    model.generation_config.eos_token_id = None

    def driver(compiled: Callable[..., Any]) -> Callable[..., Any]:
        model.forward = compiled
        return lambda text: model.generate(text, max_new_tokens=6, do_sample=False)

    return Program(model.forward, always(_tokens(8)), driver)


def _x_decoder(training: bool = False, **options: Any) -> Program:
    import x_transformers

    layers = x_transformers.Decoder(dim=32, depth=6, heads=2, attn_dim_head=16, **options)
    model = x_transformers.TransformerWrapper(num_tokens=99, max_seq_len=32, attn_layers=layers)
    return Program(model.train(training), always(_tokens(12)))


def _hugging_face(title: str, make: Callable[[], Program], gradients: bool = False) -> Workload:
    return Workload(title, make, ("transformers",), gradients)


def _plain(name: str) -> Workload:
    return _hugging_face(name.lower(), lambda: _zoo(name))


LANGUAGE = (
    *map(_plain, ("gpt2", "llama", "qwen2", "mixtral", "GPTNeoX", "DeepseekV3", "bert", "distilbert", "t5", "Bart")),
    _hugging_face("gpt2 training, loss and dropout inside", lambda: _zoo("gpt2", True), True),
    _hugging_face("bert training, dropout", lambda: _zoo("bert", True), True),
    _hugging_face("gpt2, growing lengths", lambda: _growing("gpt2")),
    _hugging_face("gpt2, decoding with a new cache", lambda: _decoding("gpt2")),
    _hugging_face("llama, decoding with a new cache", lambda: _decoding("llama")),
    _hugging_face("llama, six greedy tokens", lambda: _greedy_decoding("llama")),
    Workload("x-transformers", _x_decoder, ("x_transformers",)),
    Workload("x-transformers, rotary", lambda: _x_decoder(rotary_pos_emb=True), ("x_transformers",)),
    Workload(
        "x-transformers, dropout training",
        lambda: _x_decoder(True, attn_dropout=0.1, ff_dropout=0.1),
        ("x_transformers",),
        gradients=True,
    ),
)
