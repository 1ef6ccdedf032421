#pragma once
// Normalisations: attributes and places of inputs.

#include <algorithm>
#include <vector>

#include "ops/signature.h"
#include "ops/tensor/axes.h"

namespace sdx::ops {

// LayerNormalization, SimplifiedLayerNormalization, RMSNormalization.
struct LayerNormAttrs {
  std::int64_t axis = -1;
  float epsilon = 1e-5F;
  std::int64_t stash_type = 1;  // an element type

  void fields(auto& f) {
    f("axis", axis);
    f("epsilon", epsilon);
    f("stash_type", stash_type);
  }
};
struct LayerNormIn {
  enum Slot : std::size_t { kX, kScale, kBias };
};

// com.microsoft SkipLayerNormalization, SkipSimplifiedLayerNormalization, EmbedLayerNormalization, QEmbedLayerNormalization.
struct SkipNormAttrs {
  float epsilon = 1e-12F;

  void fields(auto& f, const OpId& op) {
    f("epsilon", epsilon);
    if (op.name == "EmbedLayerNormalization") f.unread("mask_index_type", AttrKind::i);  // always int32
  }
};
// The simplified one has no beta: its bias stands there.
struct SkipNormIn {
  enum Slot : std::size_t { kInput, kSkip, kGamma, kBeta, kBias, kSimplifiedBias = kBeta };
};

struct BatchNormAttrs {
  float epsilon = 1e-5F, momentum = 0.9F;
  bool is_test = false;        // before opset 7: not training
  bool spatial = true;         // before opset 9: statistics per channel, not per element
  bool training_mode = false;  // since opset 14

  void fields(auto& f, const OpId& op) {
    f("epsilon", epsilon);
    f("momentum", momentum);
    if (op.version >= 14) return f("training_mode", training_mode);
    if (op.version < 9) f("spatial", spatial);
    f.unread("consumed_inputs", AttrKind::ints);
    if (op.version < 7) f("is_test", is_test);
  }
};
struct BatchNormIn {
  enum Slot : std::size_t { kX, kScale, kB, kMean, kVariance };
};

// InstanceNormalization, GroupNormalization.
struct GroupNormAttrs {
  std::int64_t num_groups = 0;  // of GroupNormalization
  float epsilon = 1e-5F;

  void fields(auto& f, const OpId& op) {
    f("epsilon", epsilon);
    if (op.name == "InstanceNormalization") return f.unread("consumed_inputs", AttrKind::ints);
    f.required("num_groups", num_groups);
    f.unread("stash_type", AttrKind::i);
  }
};
struct GroupNormIn {
  enum Slot : std::size_t { kX, kScale, kBias };
};

struct LrnAttrs {
  float alpha = 1e-4F, beta = 0.75F, bias = 1;
  std::int64_t size = 0;

  void fields(auto& f) {
    f("alpha", alpha);
    f("beta", beta);
    f("bias", bias);
    f.required("size", size);
  }
};

// LpNormalization.
struct LpNormalizationAttrs {
  std::int64_t axis = -1, p = 2;

  void fields(auto& f) {
    f("axis", axis);
    f("p", p);
  }
};

// MeanVarianceNormalization.
struct MeanVarianceAttrs {
  static constexpr std::int64_t kImageAxes[] = {0, 2, 3};
  IntList axes = kImageAxes;

  void fields(auto& f) { f("axes", axes); }
  // The default axes are those of pictures; with fewer axes, only existing ones count, as in ONNX Runtime.
  std::vector<std::int64_t> of_rank(std::size_t rank) const {
    std::vector<std::int64_t> own(axes.begin(), axes.end());
    if (std::equal(own.begin(), own.end(), std::begin(kImageAxes), std::end(kImageAxes))) {
      std::erase_if(own, [&](std::int64_t axis) { return axis >= static_cast<std::int64_t>(rank); });
    }
    return normalize_axes(own, rank);
  }
};

// com.microsoft GroupNorm, SkipGroupNorm.
struct ImageGroupNormAttrs {
  std::int64_t activation = 0;
  bool channels_last = true;
  float epsilon = 1e-5F;
  std::int64_t groups = 0;

  void fields(auto& f) {
    f("activation", activation);
    f("channels_last", channels_last);
    f("epsilon", epsilon);
    f.required("groups", groups);
  }
};

}  // namespace sdx::ops
