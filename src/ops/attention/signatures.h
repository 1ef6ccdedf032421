#pragma once
// Attention: attributes and places of inputs.

#include "ops/signature.h"

namespace sdx::ops {

// Attention of ai.onnx and of sdx.
struct AttentionAttrs {
  std::int64_t q_num_heads = 0, kv_num_heads = 0;  // for inputs of rank 3
  bool causal = false;
  std::int64_t left_window = -1, right_window = -1;  // -1: none
  std::optional<float> scale;                        // else 1 / sqrt(size)
  float softcap = 0;                                 // 0: none
  std::int64_t qk_output_mode = 0;
  // Attributes of the sdx operator that fuse-attention makes of single operators. by_steps: NaN, infinities and rows that see no
  // key give the same as the single operators; a mask that comes with is_causal hides the same keys. zero_nan: probabilities that
  // are NaN become 0. q_scale, k_scale: the parts of `scale` that Q and K are multiplied by before their product.
  bool by_steps = false, zero_nan = false;
  float q_scale = 1, k_scale = 1;
  // Of the sdx operator, for texts of different lengths: rows behind those of nonpad_kv_seqlen are padding, so that query i is at
  // position i.
  bool pads_behind = false;
  FloatList slopes;  // per head: is subtracted from the score of a key for each position between it and the query (ALiBi)

  void fields(auto& f, const OpId& op) {
    f("is_causal", causal);
    f("kv_num_heads", kv_num_heads);
    f("q_num_heads", q_num_heads);
    f("qk_matmul_output_mode", qk_output_mode);
    f.unread("softmax_precision", AttrKind::i);
    if (op.version >= 25 || op.domain == "sdx") {
      f("left_window_size", left_window);
      f("right_window_size", right_window);
    }
    if (op.domain == "sdx") {
      f("by_steps", by_steps);
      f("zero_nan", zero_nan);
      f("q_scale", q_scale);
      f("k_scale", k_scale);
      f("pads_behind", pads_behind);
      f("slopes", slopes);
    }
    f("scale", scale);
    f("softcap", softcap);
  }
};
struct AttentionIn {
  // kSee and kHidden, of sdx: where `see` does not hold, the score after the mask is replaced by `hidden`.
  enum Slot : std::size_t { kQ, kK, kV, kMask, kPastKey, kPastValue, kNonpad, kSee, kHidden };
};

// com.microsoft Attention, DecoderMaskedSelfAttention, MultiHeadAttention, DecoderMaskedMultiHeadAttention, QAttention.
struct MultiHeadAttrs {
  std::int64_t num_heads = 0;
  float scale = 0;  // 0: 1 / sqrt(size)
  float mask_filter_value = -10000;
  bool unidirectional = false, do_rotary = false, past_present_share_buffer = false;
  std::int64_t rotary_embedding_dim = 0;
  IntList qkv_hidden_sizes;

  void fields(auto& f, const OpId& op) {
    const bool multi = op.name == "MultiHeadAttention", decoder = op.name == "DecoderMaskedMultiHeadAttention";
    f.required("num_heads", num_heads);
    f("scale", scale);
    f("mask_filter_value", mask_filter_value);
    if (!decoder) f("unidirectional", unidirectional);
    if (multi) return;
    f("past_present_share_buffer", past_present_share_buffer);
    if (decoder) return f.unread("output_qk", AttrKind::i);
    f("do_rotary", do_rotary);
    if (op.name == "QAttention") return;
    f("rotary_embedding_dim", rotary_embedding_dim);
    f("qkv_hidden_sizes", qkv_hidden_sizes);
  }
};

// com.microsoft Attention and DecoderMaskedSelfAttention: one input projected to query, key and value. The last two are the
// latter's.
struct ProjectedAttentionIn {
  enum Slot : std::size_t { kInput, kWeights, kBias, kMask, kPast, kAttentionBias, kPastLength, kBeamWidth, kIndirection };
};
// com.microsoft MultiHeadAttention and DecoderMaskedMultiHeadAttention: where each keeps what both may have, and where the
// projected ones do. `bias` is added to queries, keys and values.
struct MultiHeadIn {
  enum Slot : std::size_t { kQuery, kKey, kValue };
  static constexpr std::size_t kNone = 1000;  // has no such input

  std::size_t bias, mask, attention_bias, past_key, past_value, past_length, beam_width, indirection;

  static constexpr MultiHeadIn of(std::string_view op) {
    if (op == "MultiHeadAttention") return {3, 4, 5, 6, 7, 8, kNone, 9};
    if (op == "DecoderMaskedMultiHeadAttention") return {10, 3, 4, 5, 6, 7, 8, 9};
    using enum ProjectedAttentionIn::Slot;  // kBias is the projection's
    return {kNone, kMask, kAttentionBias, kPast, kPast, kPastLength, kBeamWidth, kIndirection};
  }
};

// num_heads and kv_num_heads: GroupQueryAttention, PagedAttention, SparseAttention.
struct HeadCountAttrs {
  std::int64_t num_heads = 0, kv_num_heads = 0;

  void fields(auto& f) {
    f.required("num_heads", num_heads);
    f.required("kv_num_heads", kv_num_heads);
  }
};

struct GroupQueryAttrs {
  HeadCountAttrs heads;
  bool do_rotary = false, rotary_interleaved = false, causal = true, sliding_window_cache = false;
  std::int64_t local_window_size = -1;  // -1: none
  std::int64_t qk_output = 0, smooth_softmax = 0;
  float scale = 0;  // 0: 1 / sqrt(size)
  float softcap = 0;
  float qk_norm_epsilon = 1e-6F;
  std::string_view k_quant_type = "NONE", v_quant_type = "NONE";

  bool quantised() const { return k_quant_type != "NONE" || v_quant_type != "NONE"; }
  void fields(auto& f) {
    heads.fields(f);
    f("do_rotary", do_rotary);
    f("rotary_interleaved", rotary_interleaved);
    f("local_window_size", local_window_size);
    f("qk_output", qk_output);
    f("smooth_softmax", smooth_softmax);
    f("causal", causal);
    f("sliding_window_cache", sliding_window_cache);
    f.unread("kv_cache_bit_width", AttrKind::i);
    f("scale", scale);
    f("softcap", softcap);
    f("qk_norm_epsilon", qk_norm_epsilon);
    f("k_quant_type", k_quant_type);
    f("v_quant_type", v_quant_type);
  }
};
struct GroupQueryIn {
  enum Slot : std::size_t {
    kQuery,
    kKey,
    kValue,
    kPastKey,
    kPastValue,
    kSeqlens,
    kTotal,
    kCos,
    kSin,
    kPositions,
    kBias,
    kSink,
    kKScale,
    kVScale,
    kQNorm,
    kKNorm
  };
};

// sdx PagedAttention.
struct PagedAttrs {
  HeadCountAttrs heads;
  bool do_rotary = false, rotary_interleaved = false;
  std::int64_t local_window_size = -1;  // -1: none
  std::int64_t smooth_softmax = 0;
  float scale = 0;  // 0: 1 / sqrt(size)
  float softcap = 0;
  float qk_norm_epsilon = 1e-6F;

  void fields(auto& f) {
    heads.fields(f);
    f("do_rotary", do_rotary);
    f("rotary_interleaved", rotary_interleaved);
    f("local_window_size", local_window_size);
    f("smooth_softmax", smooth_softmax);
    f("scale", scale);
    f("softcap", softcap);
    f("qk_norm_epsilon", qk_norm_epsilon);
  }
};
struct PagedIn {
  enum Slot : std::size_t {
    kQuery,
    kKey,
    kValue,
    kKeyCache,
    kValueCache,
    kKeyScales,
    kValueScales,
    kStarts,
    kPast,
    kTable,
    kCos,
    kSin,
    kSink,
    kQNorm,
    kKNorm
  };
  static constexpr std::size_t kCount = kKNorm + 1;
};

// RotaryEmbedding of ai.onnx, com.microsoft and sdx; com.microsoft's MRotaryEmbedding.
struct RotaryAttrs {
  bool interleaved = false;
  std::int64_t num_heads = 0, rotary_embedding_dim = 0;  // 0: not given
  IntList mrope_section;
  std::int64_t mrope_layout = 0;

  void fields(auto& f, const OpId& op) {
    f("interleaved", interleaved);
    f("num_heads", num_heads);
    f("rotary_embedding_dim", rotary_embedding_dim);
    if (!op.microsoft()) return;
    f.unread("is_packed_batching", AttrKind::i);
    f.unread("scale", AttrKind::f);
    if (op.name != "MRotaryEmbedding") return;
    f.required("mrope_section", mrope_section);
    f("mrope_layout", mrope_layout);
  }
};

}  // namespace sdx::ops
