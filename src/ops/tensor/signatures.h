#pragma once
// Moving elements: attributes and places of inputs.

#include <algorithm>
#include <initializer_list>

#include "ops/signature.h"

namespace sdx::ops {

struct ConcatAttrs {                           // and ConcatTraining
  static constexpr std::int64_t kDefault = 1;  // of opset 1
  std::optional<std::int64_t> axis;            // required since opset 4, and of ConcatTraining

  std::int64_t along() const { return axis.value_or(kDefault); }
  void fields(auto& f, const OpId& op) {
    if (op.version >= 4 || op.microsoft()) return f.required("axis", axis);
    f("axis", axis);
  }
};

struct SplitAttrs {  // and SplitTraining
  std::int64_t axis = 0;
  std::optional<IntList> split;             // an input since opset 13
  std::optional<std::int64_t> num_outputs;  // since opset 18

  void fields(auto& f, const OpId& op) {
    f("axis", axis);
    if (op.microsoft()) return;
    if (op.version < 13) {
      f("split", split);
    } else {
      f.undeclared("split", split);
    }
    if (op.version >= 18) f("num_outputs", num_outputs);
  }
};

// Gather, GatherElements.
struct GatherAttrs {
  std::int64_t axis = 0;

  void fields(auto& f) { f("axis", axis); }
};

struct GatherNdAttrs {  // ai.onnx
  std::int64_t batch_dims = 0;

  void fields(auto& f) { f("batch_dims", batch_dims); }
};

// Scatter, ScatterElements, ScatterND.
struct ScatterAttrs {
  std::int64_t axis = 0;
  std::string_view reduction = "none";

  void fields(auto& f, const OpId& op) {
    if (op.name != "ScatterND") f("axis", axis);
    if (op.name != "Scatter") f("reduction", reduction);
  }
};

struct TransposeAttrs {
  std::optional<IntList> perm;  // else the axes in reverse

  bool is(std::initializer_list<std::int64_t> order) const {
    return perm && std::equal(perm->begin(), perm->end(), order.begin(), order.end());
  }
  void fields(auto& f) { f("perm", perm); }
};

struct ReshapeAttrs {
  IntList shape;  // before opset 5; an input since
  bool allow_zero = false;

  void fields(auto& f, const OpId& op) {
    if (op.version >= 5) return f("allowzero", allow_zero);
    f("shape", shape);
    f.unread("consumed_inputs", AttrKind::ints);
  }
};

struct FlattenAttrs {
  std::int64_t axis = 1;

  void fields(auto& f) { f("axis", axis); }
};

// Squeeze, Unsqueeze. Before opset 13; an input since.
struct SqueezeAttrs {
  std::optional<IntList> axes;

  void fields(auto& f, const OpId& op) {
    if (op.version >= 13) return f.undeclared("axes", axes);
    if (op.name == "Unsqueeze") {
      f.required("axes", axes);
    } else {
      f("axes", axes);
    }
  }
};

// Inputs since opset 11, but for the mode.
struct PadAttrs {
  std::string_view mode = "constant";
  IntList pads;
  float value = 0;

  void fields(auto& f, const OpId& op) {
    f("mode", mode);
    if (op.microsoft() || op.version >= 11) return;
    f.required(op.version < 2 ? "paddings" : "pads", pads);
    f("value", value);
  }
};

// Before opset 10; inputs since.
struct SliceAttrs {
  IntList starts, ends;
  std::optional<IntList> axes;  // else the first ones

  void fields(auto& f) {
    f.required("starts", starts);
    f.required("ends", ends);
    f("axes", axes);
  }
};

struct OneHotAttrs {
  std::int64_t axis = -1;

  void fields(auto& f) { f("axis", axis); }
};

// Constant: exactly one is given.
struct ConstantAttrs {
  const Tensor* value = nullptr;
  const Tensor* sparse_value = nullptr;  // the reader has made it dense
  std::optional<float> value_float;
  std::optional<std::int64_t> value_int;
  std::optional<std::string_view> value_string;
  std::optional<FloatList> value_floats;
  std::optional<IntList> value_ints;
  std::optional<StringList> value_strings;

  void fields(auto& f) {
    f("value", value);
    f("value_float", value_float);
    f("value_floats", value_floats);
    f("value_int", value_int);
    f("value_ints", value_ints);
    f("value_string", value_string);
    f("value_strings", value_strings);
    f("sparse_value", sparse_value);
  }
};

// ConstantOfShape: one element.
struct FillAttrs {
  const Tensor* value = nullptr;  // else a float of 0

  void fields(auto& f) { f("value", value); }
};

// Col2Im.
struct Col2ImAttrs {
  std::optional<IntList> strides, dilations, pads;

  void fields(auto& f) {
    f("strides", strides);
    f("dilations", dilations);
    f("pads", pads);
  }
};

// Unique.
struct UniqueAttrs {
  std::optional<std::int64_t> axis;
  bool sorted = true;

  void fields(auto& f) {
    f("axis", axis);
    f("sorted", sorted);
  }
};

}  // namespace sdx::ops
