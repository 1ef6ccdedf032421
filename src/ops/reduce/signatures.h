#pragma once
// Softmax and reductions: attributes and places of inputs.

#include "ops/signature.h"

namespace sdx::ops {

// Softmax, LogSoftmax, Hardmax.
struct SoftmaxAttrs {
  std::int64_t axis = -1;
  bool flattened = false;  // before opset 13: the axes from `axis` on count as one

  void fields(auto& f, const OpId& op) {
    flattened = op.version < 13;
    if (flattened) axis = 1;
    f("axis", axis);
  }
};

// ReduceSum and its like; ReduceSumTraining.
struct ReduceAttrs {
  static constexpr int axes_input_since(std::string_view name) { return name == "ReduceSum" ? 13 : 18; }

  bool axes_are_input = false;
  IntList axes;
  bool keepdims = true;
  bool noop_with_empty_axes = false;

  void fields(auto& f, const OpId& op) {
    axes_are_input = op.microsoft() || op.version >= axes_input_since(op.name);
    if (!axes_are_input) f("axes", axes);
    f("keepdims", keepdims);
    if (axes_are_input) f("noop_with_empty_axes", noop_with_empty_axes);
  }
};
struct ReduceIn {
  enum Slot : std::size_t { kData, kAxes };
};

// ArgMax, ArgMin.
struct ArgExtremeAttrs {
  std::int64_t axis = 0;
  bool keepdims = true, select_last_index = false;

  void fields(auto& f) {
    f("axis", axis);
    f("keepdims", keepdims);
    f("select_last_index", select_last_index);
  }
};

struct TopKAttrs {
  bool k_is_input = false;  // since opset 10
  std::int64_t axis = -1, k = 0;
  bool largest = true;

  void fields(auto& f, const OpId& op) {
    k_is_input = op.version >= 10;
    f("axis", axis);
    if (!k_is_input) return f.required("k", k);
    f("largest", largest);
    f.unread("sorted", AttrKind::i);  // always
  }
};
struct TopKIn {
  enum Slot : std::size_t { kX, kK };
};

// CumSum, CumProd.
struct CumulativeAttrs {
  bool exclusive = false, reverse = false;

  void fields(auto& f) {
    f("exclusive", exclusive);
    f("reverse", reverse);
  }
};

// com.microsoft BiasSoftmax.
struct BiasSoftmaxAttrs {
  std::int64_t axis = 1;
  std::int64_t is_inner_broadcast;

  void fields(auto& f) {
    f("axis", axis);
    f.required("is_inner_broadcast", is_inner_broadcast);
  }
};

}  // namespace sdx::ops
