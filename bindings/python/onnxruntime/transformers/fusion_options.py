"""Options of ONNX Runtime's fusions, which other packages make and pass on. Sardonyx fuses whatever it can when a model is opened."""

from __future__ import annotations

from argparse import ArgumentParser
from enum import Enum
from typing import Any

_DIFFUSION = ("unet", "vae", "clip")


class AttentionMaskFormat:
    """How a mask of attention is given."""

    MaskIndexEnd = 0
    MaskIndexEndAndStart = 1
    AttentionMask = 2
    NoMask = 3


class AttentionOpType(Enum):
    """Which operator attention becomes."""

    Attention = "Attention"
    MultiHeadAttention = "MultiHeadAttention"
    GroupQueryAttention = "GroupQueryAttention"
    PagedAttention = "PagedAttention"

    def __str__(self) -> str:
        return self.value

    def __eq__(self, other: object) -> bool:
        return getattr(other, "value", None) == self.value

    def __hash__(self) -> int:
        return hash(self.value)


# A flag of the command line, the attribute that it sets, and what it sets it to.
_FLAGS: tuple[tuple[str, str, bool], ...] = (
    ("disable_gelu", "enable_gelu", False),
    ("disable_layer_norm", "enable_layer_norm", False),
    ("disable_rotary_embeddings", "enable_rotary_embeddings", False),
    ("disable_attention", "enable_attention", False),
    ("use_multi_head_attention", "use_multi_head_attention", True),
    ("disable_skip_layer_norm", "enable_skip_layer_norm", False),
    ("disable_embed_layer_norm", "enable_embed_layer_norm", False),
    ("disable_bias_skip_layer_norm", "enable_bias_skip_layer_norm", False),
    ("disable_bias_gelu", "enable_bias_gelu", False),
    ("enable_gelu_approximation", "enable_gelu_approximation", True),
    ("disable_shape_inference", "enable_shape_inference", False),
    ("enable_gemm_fast_gelu", "enable_gemm_fast_gelu", True),
)
_MASK_FLAGS: tuple[tuple[str, int], ...] = (
    ("use_mask_index", AttentionMaskFormat.MaskIndexEnd),
    ("use_raw_attention_mask", AttentionMaskFormat.AttentionMask),
    ("no_attention_mask", AttentionMaskFormat.NoMask),
)
_DIFFUSION_FLAGS: tuple[tuple[str, str, bool], ...] = (
    ("use_group_norm_channels_first", "group_norm_channels_last", False),
    ("disable_nhwc_conv", "enable_nhwc_conv", False),
    ("disable_group_norm", "enable_group_norm", False),
    ("disable_skip_group_norm", "enable_skip_group_norm", False),
    ("disable_bias_splitgelu", "enable_bias_splitgelu", False),
    ("disable_packed_qkv", "enable_packed_qkv", False),
    ("disable_packed_kv", "enable_packed_kv", False),
    ("disable_bias_add", "enable_bias_add", False),
)


class FusionOptions:
    """What to fuse, with ONNX Runtime's defaults for a kind of model ("bert", "unet")."""

    def __init__(self, model_type: str) -> None:
        self.enable_gelu = self.enable_layer_norm = self.enable_attention = self.enable_rotary_embeddings = True
        self.use_multi_head_attention = self.disable_multi_head_attention_bias = False
        self.enable_skip_layer_norm = self.enable_bias_skip_layer_norm = self.enable_bias_gelu = True
        self.enable_embed_layer_norm = model_type not in ("clip", "qwen3")
        self.enable_gelu_approximation = self.enable_gemm_fast_gelu = False
        self.enable_qordered_matmul = self.enable_shape_inference = self.group_norm_channels_last = True
        self.attention_op_type: AttentionOpType | None = None
        masks = {"bert": AttentionMaskFormat.MaskIndexEnd, "vit": AttentionMaskFormat.NoMask, "qwen3": AttentionMaskFormat.NoMask}
        self.attention_mask_format = masks.get(model_type, AttentionMaskFormat.AttentionMask)
        if model_type in _DIFFUSION:
            for _, name, off in _DIFFUSION_FLAGS:
                setattr(self, name, not off)

    def use_raw_attention_mask(self, use_raw_mask: bool = True) -> None:
        self.attention_mask_format = AttentionMaskFormat.AttentionMask if use_raw_mask else AttentionMaskFormat.MaskIndexEnd

    def disable_attention_mask(self) -> None:
        self.attention_mask_format = AttentionMaskFormat.NoMask

    def set_attention_op_type(self, attn_op_type: AttentionOpType) -> None:
        self.attention_op_type = attn_op_type

    @staticmethod
    def parse(args: Any) -> FusionOptions:
        """From the attributes that add_arguments() gives a parser's result, and its `model_type`."""
        options = FusionOptions(args.model_type)
        flags = _FLAGS + (_DIFFUSION_FLAGS if args.model_type in _DIFFUSION else ())
        for flag, name, value in flags:
            if getattr(args, flag):
                setattr(options, name, value)
        for flag, mask in _MASK_FLAGS:
            if getattr(args, flag):
                options.attention_mask_format = mask
        return options

    @staticmethod
    def add_arguments(parser: ArgumentParser) -> None:
        for flag in [f[0] for f in _FLAGS] + [f[0] for f in _MASK_FLAGS] + [f[0] for f in _DIFFUSION_FLAGS]:
            parser.add_argument(f"--{flag}", action="store_true", default=False, help=flag.replace("_", " "))
