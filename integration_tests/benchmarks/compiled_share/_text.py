"""Language models: training with labels, decoding with caches that keep their size, mixtures of
experts."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from integration_tests.benchmarks.compiled_share._step import (
    Compiled,
    forward,
    loss_of,
    training,
)
from integration_tests.benchmarks.real_models._workload import (
    Program,
    Workload,
    always,
    library,
)

_WORDS = 99
_WIDTHS = {
    "vocab_size": _WORDS,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_EXPERTS = {**_WIDTHS, "num_experts_per_tok": 2, "output_router_logits": True}
_PAIR = {
    "vocab_size": _WORDS,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}
_T5 = {
    "vocab_size": _WORDS,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 64,
    "num_layers": 2,
    "num_heads": 4,
    "decoder_start_token_id": 0,
}
_MAMBA = {"vocab_size": _WORDS, "hidden_size": 32, "state_size": 4, "num_hidden_layers": 2}

_SIZES: dict[str, dict[str, Any]] = {
    "GPT2LMHeadModel": {
        "vocab_size": _WORDS,
        "n_embd": 32,
        "n_layer": 2,
        "n_head": 4,
        "n_positions": 64,
        "bos_token_id": 1,
        "eos_token_id": 2,
    },
    "Qwen3ForCausalLM": {**_WIDTHS, "head_dim": 8},
    "Gemma2ForCausalLM": {**_WIDTHS, "head_dim": 8},
    "MixtralForCausalLM": {**_EXPERTS, "num_local_experts": 4},
    "Qwen2MoeForCausalLM": {
        **_EXPERTS,
        "num_experts": 4,
        "moe_intermediate_size": 16,
        "shared_expert_intermediate_size": 32,
    },
    "Qwen3MoeForCausalLM": {
        **_EXPERTS,
        "num_experts": 4,
        "moe_intermediate_size": 16,
        "head_dim": 8,
    },
    "DeepseekV3ForCausalLM": {
        **_WIDTHS,
        "num_key_value_heads": 4,
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
    },
    "BartForConditionalGeneration": _PAIR,
    "T5ForConditionalGeneration": _T5,
    "MambaForCausalLM": _MAMBA,
}


def transformer(name: str, **options: Any) -> Any:
    """Return a class of ``transformers`` in small sizes, with random weights."""
    model_class = getattr(library("transformers"), name)
    sizes = {**_SIZES.get(name, _WIDTHS), **options}
    return model_class(model_class.config_class(**sizes))


def words(length: int = 12, batch: int = 2) -> Tensor:
    return torch.randint(3, _WORDS, (batch, length))


def _causal(name: str) -> Program:
    """A language model in training: the text is its own label."""
    text = words()
    return training(transformer(name), input_ids=text, labels=text.clone(), use_cache=False)


def _masked() -> Program:
    text = words()
    mask = torch.ones_like(text)
    mask[0, 8:] = 0
    model = transformer("BertForMaskedLM")
    return training(model, input_ids=text, attention_mask=mask, labels=text.clone())


def _sorted_in_classes(name: str) -> Program:
    model = transformer(name, num_labels=3)
    return training(model, input_ids=words(), labels=torch.tensor([0, 2]))


def _translated(name: str) -> Program:
    return training(transformer(name), input_ids=words(), labels=words(8), use_cache=False)


def _static_decoding(name: str) -> Program:
    """Four greedy tokens with a cache of fixed size, after a prompt that is read in every call."""
    model = transformer(name).eval()
    cache = library("transformers").StaticCache(config=model.config, max_cache_len=32)
    text = words(4, 1)

    def driver(compiled: Compiled) -> Compiled:
        def decode(text: Tensor) -> list[Tensor]:
            cache.reset()
            found = []
            for _ in range(5):
                output = compiled(input_ids=text, past_key_values=cache, use_cache=True)
                found.append(output.logits[:, -1])
                text = found[-1].argmax(-1, keepdim=True)
            return found

        return decode

    return Program(model, always(text), driver)


def _generation(name: str, **options: Any) -> Program:
    """``generate`` of a library model whose ``forward`` is compiled."""
    model = transformer(name).eval()
    model.generation_config.pad_token_id = 0
    model.generation_config.eos_token_id = None

    def driver(compiled: Compiled) -> Compiled:
        model.forward = compiled
        return lambda text: model.generate(text, max_new_tokens=5, do_sample=False, **options)

    return Program(model.forward, always(words(6, 1)), driver)


def _growing_cache(name: str) -> Program:
    """Four greedy tokens with a cache that grows, made anew in each call."""
    model = transformer(name).eval()
    cache_class = library("transformers").DynamicCache

    def driver(compiled: Compiled) -> Compiled:
        def decode(text: Tensor) -> list[Tensor]:
            cache, found = cache_class(config=model.config), []
            for _ in range(4):
                output = compiled(input_ids=text, past_key_values=cache, use_cache=True)
                found.append(output.logits[:, -1])
                text = found[-1].argmax(-1, keepdim=True)
            return found

        return decode

    return Program(model, always(words(6, 1)), driver)


def _x_decoder(in_training: bool = False, **options: Any) -> Program:
    package = library("x_transformers")
    layers = package.Decoder(dim=32, depth=3, heads=2, attn_dim_head=16, **options)
    model = package.TransformerWrapper(num_tokens=_WORDS, max_seq_len=32, attn_layers=layers)
    if not in_training:
        return forward(model, words())
    return training(package.AutoregressiveWrapper(model), words(13))


def _adapted() -> Program:
    """Low-rank adapters of ``peft`` on a frozen model."""
    peft = library("peft")
    base = transformer("LlamaForCausalLM")
    config = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], lora_dropout=0.1)
    text = words()
    model = peft.get_peft_model(base, config)
    return training(model, input_ids=text, labels=text.clone(), use_cache=False)


def _checkpointed() -> Program:
    """Gradient checkpointing as ``transformers`` switches it on."""
    model = transformer("LlamaForCausalLM")
    model.gradient_checkpointing_enable()
    text = words()
    return training(model, input_ids=text, labels=text.clone(), use_cache=False)


def _sentences() -> Program:
    """Sentence embeddings with a contrastive loss, as ``sentence_transformers`` computes them."""
    parts = library("sentence_transformers.models")
    bert = transformer("BertModel")
    pooling = parts.Pooling(32, pooling_mode="mean")
    dense = nn.Linear(32, 16)

    def loss(ids: Tensor, mask: Tensor) -> Tensor:
        hidden = bert(input_ids=ids, attention_mask=mask).last_hidden_state
        features = {"token_embeddings": hidden, "attention_mask": mask}
        embedded = nn.functional.normalize(dense(pooling(features)["sentence_embedding"]), dim=-1)
        return nn.functional.cross_entropy(embedded @ embedded.T * 20, torch.arange(ids.shape[0]))

    text = words(batch=4)
    mask = torch.ones_like(text)
    mask[1:, 9:] = 0
    return loss_of(loss, [bert.train(), dense], text, mask)


def _hugging_face(title: str, make: Callable[[], Program], gradients: bool = True) -> Workload:
    return Workload(title, make, ("transformers",), gradients)


_CAUSAL = {
    "gpt2 with labels, training": "GPT2LMHeadModel",
    "llama with labels, training": "LlamaForCausalLM",
    "gemma2 with labels, training": "Gemma2ForCausalLM",
    "mixtral, training": "MixtralForCausalLM",
    "qwen2-moe, training": "Qwen2MoeForCausalLM",
    "qwen3-moe, training": "Qwen3MoeForCausalLM",
    "deepseek-v3, training": "DeepseekV3ForCausalLM",
    "mamba, training": "MambaForCausalLM",
}
_STATIC = {
    "llama, decoding with a static cache": "LlamaForCausalLM",
    "mistral, decoding with a static cache": "MistralForCausalLM",
    "qwen3, decoding with a static cache": "Qwen3ForCausalLM",
}

TEXT = (
    *(_hugging_face(title, functools.partial(_causal, name)) for title, name in _CAUSAL.items()),
    *(
        _hugging_face(title, functools.partial(_static_decoding, name), False)
        for title, name in _STATIC.items()
    ),
    _hugging_face("bert with a mask and labels, training", _masked),
    _hugging_face(
        "distilbert, classes, training",
        lambda: _sorted_in_classes("DistilBertForSequenceClassification"),
    ),
    _hugging_face("t5 with labels, training", lambda: _translated("T5ForConditionalGeneration")),
    _hugging_face(
        "bart with labels, training", lambda: _translated("BartForConditionalGeneration")
    ),
    _hugging_face("llama, checkpointed, training", _checkpointed),
    _hugging_face("gpt2, decoding", lambda: _growing_cache("GPT2LMHeadModel"), False),
    _hugging_face("mamba, generate", lambda: _generation("MambaForCausalLM"), False),
    _hugging_face("llama, generate", lambda: _generation("LlamaForCausalLM"), False),
    Workload("x-transformers, training", lambda: _x_decoder(True), ("x_transformers",), True),
    Workload(
        "x-transformers, rotary",
        lambda: _x_decoder(rotary_pos_emb=True, rotary_emb_dim=16),
        ("x_transformers",),
    ),
    Workload("peft lora of llama, training", _adapted, ("transformers", "peft"), True),
    Workload(
        "sentence-transformers, training",
        _sentences,
        ("transformers", "sentence_transformers"),
        True,
    ),
)
