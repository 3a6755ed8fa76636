"""Language models of ``transformers`` and ``x_transformers``: forward, decoding with caches,
generation, training."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from integration_tests.benchmarks.real_models._workload import (
    Arguments,
    Program,
    Workload,
    always,
    library,
)

# Sizes under the names that the configurations have for them; each takes those that it knows.
_DECODER = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 12,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_DEEPSEEK = {
    **_DECODER,
    "moe_intermediate_size": 16,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "n_group": 1,
    "topk_group": 1,
    "first_k_dense_replace": 1,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
}
_PAIR = {
    "vocab_size": 99,
    "d_model": 32,
    "encoder_layers": 6,
    "decoder_layers": 6,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_SIZES = {
    "GPTNeoXForCausalLM": _DECODER,
    "MistralForCausalLM": _DECODER,
    "Qwen3ForCausalLM": {**_DECODER, "head_dim": 8},
    "Gemma2ForCausalLM": {**_DECODER, "head_dim": 8},
    "DeepseekV3ForCausalLM": _DEEPSEEK,
    "BartForConditionalGeneration": _PAIR,
}


def _model(name: str) -> Any:
    """A model of the zoo, or else a class of ``transformers`` in the sizes above; weights are
    random."""
    import transformers

    from integration_tests.corpora.models import ZOO

    if name in ZOO:
        return ZOO[name].make()[0]

    model_class = getattr(transformers, name)
    config_class = model_class.config_class
    return model_class(config_class(**_SIZES[name])).eval()


def _zoo(name: str, training: bool = False) -> Program:
    """A model of the zoo at its full depth, with the arguments that it has there."""
    from integration_tests.corpora.models import ZOO

    model, call, _ = ZOO[name].make()
    return Program(model.train(training), always(*call.args, **call.kwargs))


def _decoder(name: str) -> Program:
    """A forward of twelve tokens, which makes and returns a cache object."""
    return Program(_model(name), always(input_ids=_tokens(12)))


def _pair(name: str) -> Program:
    """A forward of an encoder and a decoder."""
    return Program(_model(name), always(input_ids=_tokens(12), decoder_input_ids=_tokens(6)))


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

    parts = _parts(model(input_ids=text, use_cache=True).past_key_values)

    def make() -> Any:
        return _cache_of(DynamicCache(config=model.config), parts)

    return make


def _filled_pair_cache(model: Any, text: Tensor) -> Callable[[], Any]:
    """Return a maker of cache objects of an encoder and a decoder, for ``text`` and two tokens of
    the answer."""
    from transformers import DynamicCache, EncoderDecoderCache

    filled = model(input_ids=text, decoder_input_ids=_tokens(2), use_cache=True).past_key_values
    own, crossed = _parts(filled.self_attention_cache), _parts(filled.cross_attention_cache)

    def make() -> Any:
        caches = [_cache_of(DynamicCache(config=model.config), parts) for parts in (own, crossed)]
        return EncoderDecoderCache(*caches)

    return make


def _parts(cache: Any) -> list[tuple[Tensor, Tensor]]:
    return [(layer.keys, layer.values) for layer in cache.layers]


def _cache_of(cache: Any, parts: list[tuple[Tensor, Tensor]]) -> Any:
    for number, (keys, values) in enumerate(parts):
        cache.update(keys, values, number)
    return cache


def _decoding(name: str) -> Program:
    """One token, with a new cache object that holds eight."""
    model = _model(name)
    make_cache = _filled_cache(model, _tokens(8))
    token = _tokens(1)

    def arguments(number: int) -> Arguments:
        return (), {"input_ids": token, "past_key_values": make_cache(), "use_cache": True}

    return Program(model, arguments)


def _pair_decoding(name: str) -> Program:
    """One token of a decoder, with a new pair of cache objects."""
    model = _model(name)
    text, token = _tokens(8), _tokens(1)
    make_cache = _filled_pair_cache(model, text)
    encoded = model.get_encoder()(text)

    def arguments(number: int) -> Arguments:
        given = {
            "encoder_outputs": encoded,
            "decoder_input_ids": token,
            "past_key_values": make_cache(),
        }
        return (), {**given, "use_cache": True}

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
    """``generate`` of a library model whose forward is compiled, which makes its own cache object
    in each call."""
    model = _model("gpt2")
    model.generation_config.pad_token_id = 0
    model.generation_config.eos_token_id = None

    def driver(compiled: Callable[..., Any]) -> Callable[..., Any]:
        model.forward = compiled
        return lambda text: model.generate(text, max_new_tokens=6, do_sample=False)

    return Program(model.forward, always(_tokens(8)), driver)


def _x_decoder(training: bool = False, **options: Any) -> Program:
    package = library("x_transformers")
    layers = package.Decoder(dim=32, depth=6, heads=2, attn_dim_head=32, **options)
    model = package.TransformerWrapper(num_tokens=99, max_seq_len=32, attn_layers=layers)
    return Program(model.train(training), always(_tokens(12)))


def _hugging_face(title: str, make: Callable[[], Program], gradients: bool = False) -> Workload:
    return Workload(title, make, ("transformers",), gradients)


_DECODERS = {
    "gpt2": "gpt2",
    "llama": "llama",
    "qwen2": "qwen2",
    "mixtral": "mixtral",
    "mistral": "MistralForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "gemma2": "Gemma2ForCausalLM",
    "gpt-neox": "GPTNeoXForCausalLM",
    "deepseek-v3": "DeepseekV3ForCausalLM",
}

_PAIRS = {"t5": "t5", "bart": "BartForConditionalGeneration"}

LANGUAGE = (
    *(_hugging_face(title, functools.partial(_decoder, name)) for title, name in _DECODERS.items()),
    *(_hugging_face(title, functools.partial(_pair, name)) for title, name in _PAIRS.items()),
    *(
        _hugging_face(f"{title}, decoding", functools.partial(_pair_decoding, name))
        for title, name in _PAIRS.items()
    ),
    _hugging_face("bert", lambda: _zoo("bert")),
    _hugging_face("distilbert", lambda: _zoo("distilbert")),
    _hugging_face("gpt2 training, loss and dropout", lambda: _zoo("gpt2", True), True),
    _hugging_face("bert training, dropout", lambda: _zoo("bert", True), True),
    _hugging_face("gpt2, growing lengths", lambda: _growing("gpt2")),
    _hugging_face("gpt2, decoding", lambda: _decoding("gpt2")),
    _hugging_face("llama, decoding", lambda: _decoding("llama")),
    _hugging_face("llama, six greedy tokens", lambda: _greedy_decoding("llama")),
    Workload("x-transformers", _x_decoder, ("x_transformers",)),
    Workload(
        "x-transformers, rotary",
        lambda: _x_decoder(rotary_pos_emb=True, rotary_emb_dim=32),
        ("x_transformers",),
    ),
    Workload(
        "x-transformers training, dropout",
        lambda: _x_decoder(True, attn_dropout=0.1, ff_dropout=0.1),
        ("x_transformers",),
        gradients=True,
    ),
)
