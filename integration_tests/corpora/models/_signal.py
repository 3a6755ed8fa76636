"""Vision and speech models of ``transformers``: full depth, small width, random weights."""

from __future__ import annotations

from typing import Any

import torch
import transformers

from integration_tests.corpora.models._sample import Item, tokens
from integration_tests.support.arguments import Call

WIDTH, HEADS = 32, 4


def _vit(depth: int) -> Any:
    return transformers.ViTForImageClassification(
        transformers.ViTConfig(
            hidden_size=WIDTH,
            num_hidden_layers=depth,
            num_attention_heads=HEADS,
            intermediate_size=2 * WIDTH,
            image_size=32,
            patch_size=8,
            # else the first call writes it into the configuration
            problem_type="single_label_classification",
        )
    )


def _whisper(depth: int) -> Any:
    return transformers.WhisperForConditionalGeneration(
        transformers.WhisperConfig(
            vocab_size=99,
            d_model=WIDTH,
            encoder_layers=depth,
            decoder_layers=depth,
            encoder_attention_heads=HEADS,
            decoder_attention_heads=HEADS,
            encoder_ffn_dim=2 * WIDTH,
            decoder_ffn_dim=2 * WIDTH,
            num_mel_bins=20,
            max_source_positions=30,
            max_target_positions=32,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            decoder_start_token_id=1,
        )
    )


def _wav2vec2(depth: int) -> Any:
    return transformers.Wav2Vec2Model(
        transformers.Wav2Vec2Config(
            hidden_size=WIDTH,
            num_hidden_layers=depth,
            num_attention_heads=HEADS,
            intermediate_size=2 * WIDTH,
            conv_dim=(16,) * 7,
            num_conv_pos_embeddings=16,
            num_conv_pos_embedding_groups=4,
        )
    )


def _picture(batch: int) -> Call:
    return Call(
        kwargs={"pixel_values": torch.randn(batch, 3, 32, 32), "labels": torch.arange(batch) % 2}
    )


def _spectrum(batch: int) -> Call:
    return Call(kwargs={"input_features": torch.randn(batch, 20, 60), "labels": tokens(batch, 8)})


def _sound(batch: int) -> Call:
    return Call(args=(torch.randn(batch, 4000),))


SIGNAL = (
    Item("vit", _vit, _picture),
    Item("whisper", _whisper, _spectrum, depth=4),
    Item("wav2vec2", _wav2vec2, _sound),
)
