"""Every family of models of ``transformers`` that can be made small from its configuration alone:
names and sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import torch
import transformers

from integration_tests.corpora.models._sample import Item, tokens
from integration_tests.support.arguments import Call

DECODERS = """
GPTNeo GPTNeoX GPTJ Bloom Falcon Gemma2 Qwen3 Qwen3Moe Olmo Olmo2 Olmoe Phi3 StableLm Starcoder2
Cohere Cohere2 Granite GraniteMoe Glm Glm4 Mamba2 Rwkv RecurrentGemma DeepseekV2 DeepseekV3 GptOss Persimmon Nemotron
CTRL XGLM BioGpt Ernie4_5 SmolLM3 Exaone4 Helium Jamba Bamba FalconMamba Lfm2 MiniMax Dots1 Arcee
HunYuanDenseV1 Zamba2 Mixtral
""".split()
ENCODERS = """
Albert XLNet Roberta Camembert XLM Longformer BigBird Funnel MobileBert SqueezeBert ConvBert Deberta MPNet Nystromformer
RoFormer Splinter Yoso FNet Luke Ernie IBert MegatronBert Mra Canine ModernBert XLMRobertaXL Flaubert Xmod EuroBert
Esm
""".split()
VISION = """
DeiT Beit Dinov2 Dinov2WithRegisters Swinv2 ConvNextV2 ViTMAE ViTMSN Segformer PoolFormer RegNet ResNet MobileNetV1
MobileNetV2 MobileViT MobileViTV2 FocalNet Hiera PvtV2 Pvt SwiftFormer DPT GLPN Data2VecVision IJepa SiglipVision
CLIPVision HGNetV2 TextNet VitDet Yolos
""".split()
AUDIO = (
    "Wav2Vec2 Hubert WavLM UniSpeech UniSpeechSat SEW SEWD Wav2Vec2Conformer Data2VecAudio".split()
)
PAIRS = """
Bart MBart Pegasus PegasusX Marian Blenderbot BlenderbotSmall M2M100 MT5 UMT5 LongT5 SwitchTransformers LED ProphetNet
PLBart NllbMoe BigBirdPegasus FSMT
""".split()

WIDTH = 32
_SIZES = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim", "emb_dim"), WIDTH),
    **dict.fromkeys(
        ("intermediate_size", "ffn_dim", "d_ff", "hidden_dim", "intermediate_size_mlp"), 48
    ),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 48),
    **dict.fromkeys(
        (
            "num_hidden_layers",
            "n_layer",
            "num_layers",
            "n_layers",
            "encoder_layers",
            "decoder_layers",
        ),
        2,
    ),
    **dict.fromkeys(("num_attention_heads", "n_head", "num_heads", "n_heads"), 4),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4),
    **dict.fromkeys(
        ("num_local_experts", "num_experts", "n_routed_experts", "attention_window", "rotary_dim"),
        4,
    ),
    **dict.fromkeys(
        ("head_dim", "d_kv", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim", "patch_size"), 8
    ),
    **dict.fromkeys(("embedding_size", "moe_intermediate_size", "q_lora_rank", "kv_lora_rank"), 16),
    **dict.fromkeys(("n_group", "topk_group", "first_k_dense_replace", "num_hidden_groups"), 1),
    **{
        "vocab_size": 100,
        "entity_vocab_size": 20,
        "max_position_embeddings": 64,
        "n_positions": 64,
    },
    **{"num_key_value_heads": 2, "num_experts_per_tok": 2, "state_size": 8, "image_size": 32},
    **{"num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4},
    **{"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2},
}
"""What these fields are called differs; each configuration takes those that it has."""

_OWN_SIZES: dict[str, dict[str, Any]] = {
    "Bamba": {"mamba_n_heads": 8, "attn_layer_indices": [1]},
    "ConvNextV2": {
        "hidden_size": None,
        "num_hidden_layers": None,
        "hidden_sizes": [8, 16, 24, 32],
        "depths": [1, 1, 1, 1],
        "patch_size": 4,
    },
    "DeepseekV2": {"num_key_value_heads": 4},
    "DeepseekV3": {"num_key_value_heads": 4},
    "Dots1": {"n_shared_experts": 1},
    "Funnel": {"num_hidden_layers": None, "block_sizes": [1, 1]},
    "GPTNeo": {"attention_types": [[["global", "local"], 1]]},
    "Jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "LongT5": {"decoder_start_token_id": 0},
    "Mamba2": {"num_heads": 8},
    "Marian": {"decoder_start_token_id": 0},
    "MobileViTV2": {"patch_size": 1},
    "ProphetNet": {"num_hidden_layers": None, "num_encoder_layers": 2, "num_decoder_layers": 2},
    "RecurrentGemma": {"num_hidden_layers": 3},
    "SqueezeBert": {"embedding_size": WIDTH},
    "Swinv2": {"patch_size": 4, "window_size": 2, "num_heads": [3, 6, 12, 24]},
    "SwitchTransformers": {"decoder_start_token_id": 0},
    "XLNet": {"max_position_embeddings": None},
    "Xmod": {"default_language": "en_XX"},
    "Zamba2": {"layers_block_type": ["mamba", "hybrid"]},
}
"""Sizes of families that do not take those above; None stands for the family's own."""


def _labelled(batch: int) -> Call:
    ids = tokens(batch)
    return Call(kwargs={"input_ids": ids, "labels": ids})


def _mask(batch: int) -> torch.Tensor:
    """Some models make one, unless they are compiled."""
    return torch.ones(batch, 16, dtype=torch.long)


def _masked(batch: int) -> Call:
    return Call(kwargs={"input_ids": tokens(batch), "attention_mask": _mask(batch)})


def _labelled_and_masked(batch: int) -> Call:
    return Call(kwargs={**_labelled(batch).kwargs, "attention_mask": _mask(batch)})


@attrs.frozen
class Kind:
    """Families that are called alike: how their classes are named after the family, and their
    arguments."""

    families: list[str]
    classes: tuple[str, ...]
    call: Callable[[int], Call]


_KINDS = (
    Kind(DECODERS, ("ForCausalLM", "LMHeadModel"), _labelled),
    Kind(ENCODERS, ("Model",), _masked),
    Kind(
        VISION,
        ("Model", "Backbone", "ForImageClassification"),
        lambda batch: Call(kwargs={"pixel_values": torch.randn(batch, 3, 32, 32)}),
    ),
    Kind(AUDIO, ("Model",), lambda batch: Call(kwargs={"input_values": torch.randn(batch, 6400)})),
    Kind(PAIRS, ("ForConditionalGeneration", "MTModel", "Model"), _labelled_and_masked),
)


def _class(family: str, endings: tuple[str, ...]) -> Any:
    names = [start + ending for ending in endings for start in (family, family.upper())]
    return next(getattr(transformers, name) for name in names if hasattr(transformers, name))


def _sizes(family: str, known: Any) -> dict[str, Any]:
    """The sizes that a configuration takes; some have one for each stage or side."""
    own = _OWN_SIZES.get(family, {})
    found = {name: size for name, size in own.items() if size is not None}
    for name in _SIZES.keys() - own.keys():
        size = _SIZES[name]
        of_class = getattr(type(known), name, None)
        if not hasattr(known, name) or (isinstance(of_class, property) and of_class.fset is None):
            continue
        default = getattr(known, name)
        is_series = isinstance(default, list | tuple)
        found[name] = type(default)([size] * len(default)) if is_series else size
    return found


def _built(family: str, kind: Kind) -> Any:
    config = _class(family, ("Config",))
    return _class(family, kind.classes)(config(**_sizes(family, config())))


def _item(family: str, kind: Kind) -> Item:
    return Item(family, lambda _: _built(family, kind), kind.call)


FAMILIES = {family: _item(family, kind) for kind in _KINDS for family in kind.families}
"""Looking for the classes would import them all, so each family finds its own."""
