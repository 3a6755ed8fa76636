"""Text models of ``transformers``: full depth, small width, random weights, nothing downloaded."""

from __future__ import annotations

from typing import Any

import transformers

from integration_tests.corpora.models._sample import Item, tokens, unmasked
from integration_tests.support.arguments import Call

WIDTH, HEADS, VOCABULARY = 32, 4, 99


def _bert(depth: int) -> Any:
    return transformers.BertModel(
        transformers.BertConfig(
            vocab_size=VOCABULARY,
            hidden_size=WIDTH,
            num_hidden_layers=depth,
            num_attention_heads=HEADS,
            intermediate_size=2 * WIDTH,
        )
    )


def _distilbert(depth: int) -> Any:
    return transformers.DistilBertModel(
        transformers.DistilBertConfig(
            vocab_size=VOCABULARY, dim=WIDTH, n_layers=depth, n_heads=HEADS, hidden_dim=2 * WIDTH
        )
    )


def _gpt2(depth: int) -> Any:
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=VOCABULARY,
            n_embd=WIDTH,
            n_layer=depth,
            n_head=HEADS,
            n_positions=64,
            bos_token_id=1,
            eos_token_id=2,
        )
    )


_DECODER = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "num_attention_heads": HEADS,
    "num_key_value_heads": 2,
    "intermediate_size": 2 * WIDTH,
    "max_position_embeddings": 64,
}


def _llama(depth: int) -> Any:
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(**_DECODER, num_hidden_layers=depth)
    )


def _qwen2(depth: int) -> Any:
    return transformers.Qwen2ForCausalLM(
        transformers.Qwen2Config(**_DECODER, num_hidden_layers=depth)
    )


def _mixtral(depth: int) -> Any:
    return transformers.MixtralForCausalLM(
        transformers.MixtralConfig(
            **_DECODER, num_hidden_layers=depth, num_local_experts=4, num_experts_per_tok=2
        )
    )


def _t5(depth: int) -> Any:
    return transformers.T5ForConditionalGeneration(
        transformers.T5Config(
            vocab_size=VOCABULARY,
            d_model=WIDTH,
            d_kv=WIDTH // HEADS,
            d_ff=2 * WIDTH,
            num_layers=depth,
            num_heads=HEADS,
            decoder_start_token_id=0,
        )
    )


def _masked(batch: int) -> Call:
    return Call(kwargs={"input_ids": tokens(batch), "attention_mask": unmasked(batch)})


def _labelled(batch: int) -> Call:
    text = tokens(batch)
    return Call(
        kwargs={"input_ids": text, "attention_mask": unmasked(batch), "labels": text.clone()}
    )


def _causal(batch: int) -> Call:
    return Call(kwargs={"input_ids": tokens(batch)})


def _translated(batch: int) -> Call:
    return Call(
        kwargs={
            "input_ids": tokens(batch),
            "attention_mask": unmasked(batch),
            "labels": tokens(batch, 8),
        }
    )


LANGUAGE = (
    Item("bert", _bert, _masked),
    Item("distilbert", _distilbert, _masked, depth=6),
    Item("gpt2", _gpt2, _labelled),
    Item("llama", _llama, _causal),
    Item("qwen2", _qwen2, _masked),
    Item("mixtral", _mixtral, _causal),
    Item("t5", _t5, _translated, depth=6),
)
