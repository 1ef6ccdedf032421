#include "passes/narrow_choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "base/words.h"
#include "graph/edit.h"
#include "tensor/element.h"

namespace sdx {
namespace {

// Constants of a computation with integers: factors, offsets, a table of frequencies. Larger ones are weights.
constexpr std::int64_t kSmall = 4096;

struct Rule {
  std::string_view op, why;
};

// Ten bits of mantissa resolve steps of 1 from 1024 on, of 2 from 2048 on.
constexpr std::array<Rule, 9> kDigits = {{{"Sin", "large angles need more digits"},
                                          {"Cos", "large angles need more digits"},
                                          {"Tan", "large angles need more digits"},
                                          {"CumSum", "long sums need more digits"},
                                          {"CumProd", "long products need more digits"},
                                          {"DFT", "long sums need more digits"},
                                          {"STFT", "long sums need more digits"},
                                          {"Det", "differences of products need more digits"},
                                          {"RoiAlign", "coordinates in pixels need more digits"}}};

// The opset from which on ai.onnx defines an operator for a type. It matters for operators whose definitions in this program,
// which must suit other engines' models, are wider, and for Cast (6, 13), which is older. 99: never.
struct Since {
  DataType type;
  int opset;
  std::string_view operators;  // with a blank before and behind each
};

constexpr std::array<Since, 12> kSince = {
    {{DataType::float16, 19, " DequantizeLinear QuantizeLinear "},
     {DataType::float16, 20, " IsInf "},
     {DataType::float16, 21, " QLinearMatMul "},
     {DataType::float16, 27, " Range "},
     {DataType::float16, 28, " Celu "},
     {DataType::bfloat16, 16, " BatchNormalization GreaterOrEqual LeakyRelu LessOrEqual PRelu Pow Where "},
     {DataType::bfloat16, 21, " ConstantOfShape DequantizeLinear IsInf QLinearMatMul QuantizeLinear "},
     {DataType::bfloat16, 22,
      " Acos Acosh Asin Asinh Atan Atanh AveragePool Bernoulli Conv ConvTranspose Cosh DeformConv Dropout Elu EyeLike GRU "
      "GlobalAveragePool GlobalLpPool GlobalMaxPool GridSample HardSigmoid HardSwish InstanceNormalization LSTM LpNormalization "
      "LpPool MaxPool MaxRoiPool MaxUnpool Mish Multinomial NegativeLogLikelihoodLoss RNN RandomNormal RandomNormalLike "
      "RandomUniform RandomUniformLike Round Selu Sinh Softplus Softsign ThresholdedRelu "},
     {DataType::bfloat16, 24, " TopK "},
     {DataType::bfloat16, 27, " Range "},
     {DataType::bfloat16, 28, " Celu Compress Einsum ReverseSequence Unique "},
     {DataType::bfloat16, 99, " OneHot Scatter Shrink Upsample "}}};

bool defined_for(const Node& n, DataType type) {
  if (!n.domain.empty()) return true;
  const std::string word = " " + n.op_type + " ";
  return std::none_of(kSince.begin(), kSince.end(), [&](const Since& s) {
    return s.type == type && n.version < s.opset && s.operators.find(word) != std::string_view::npos;
  });
}

constexpr const char* kQuantised = "it computes with dequantised values";
constexpr const char* kSquares = "squares and exponentials exceed the range of float16";

// Operators that hand on what is too large for float16; the last three reduce it.
constexpr std::string_view kHandOn =
    "ReduceMean ReduceSum ReduceMax Add Sub Mul Div Sum Max Min Clip Neg Reshape Transpose Expand Squeeze Unsqueeze Identity "
    "Sqrt Reciprocal Log";

bool reduces(std::string_view op) { return op == "Sqrt" || op == "Reciprocal" || op == "Log"; }

bool holds_float32(const Type& type) {
  if (type.is_tensor()) return type.elem == DataType::float32;
  return type.inner && holds_float32(*type.inner);
}

class Chooser {
 public:
  Chooser(const Graph& graph, const NarrowOptions& options)
      : g_(graph),
        options_(options),
        why_(graph.nodes().size()),
        from_extents_(graph.values().size()),
        from_integers_(graph.values().size()),
        large_(graph.values().size()),
        dequantised_(graph.values().size()) {}

  std::vector<std::string> run() {
    for (NodeId id = 0; id < g_.nodes().size(); ++id) {
      if (g_.node(id).removed) continue;
      trace_origin(id);
      why_[id] = first_reason(id);
      if (why_[id] == kQuantised || (g_.node(id).op_type == "DequantizeLinear" && !why_[id].empty()))
        mark(dequantised_, g_.node(id));
      if (why_[id] == kSquares && !reduces(g_.node(id).op_type)) mark(large_, g_.node(id));
    }
    keep_what_leads_to_kept();
    return why_;
  }

 private:
  static void mark(std::vector<bool>& set, const Node& n) {
    for (const ValueId v : n.outputs) {
      if (v != kNoValue) set[v] = true;
    }
  }

  // Whether the node reads only values in `set` and small constants, and at least one in `set`.
  bool stems_from(const Node& n, const std::vector<bool>& set) const {
    bool any = false;
    for (const ValueId v : n.inputs) {
      if (v == kNoValue) continue;
      if (set[v]) {
        any = true;
      } else if (constant_of(g_, v) == nullptr || g_.value(v).constant->size() > kSmall) {
        return false;
      }
    }
    return any;
  }

  void trace_origin(NodeId id) {
    const Node& n = g_.node(id);
    if (!n.subgraphs.empty()) return;
    const bool extents = n.domain.empty() && (n.op_type == "Shape" || n.op_type == "Size");
    if (extents || stems_from(n, from_extents_)) mark(from_extents_, n);
    const auto integer = [&](ValueId v) {
      return v == kNoValue || constant_of(g_, v) != nullptr || !holds_float32(g_.value(v).type);
    };
    const bool reads_integers = !n.inputs.empty() && std::all_of(n.inputs.begin(), n.inputs.end(), integer);
    const bool small = std::all_of(n.inputs.begin(), n.inputs.end(), [&](ValueId v) {
      return v == kNoValue || constant_of(g_, v) == nullptr || g_.value(v).constant->size() <= kSmall;
    });
    if (extents || (reads_integers && small) || stems_from(n, from_integers_)) mark(from_integers_, n);
  }

  // Single numbers are limits and masks, which may be clipped; a variance or a weight may not.
  bool constants_too_large(const Node& n) const {
    if (options_.to != DataType::float16) return false;
    for (const ValueId v : n.inputs) {
      if (v == kNoValue || constant_of(g_, v) == nullptr || !is_float32(g_, v) || g_.value(v).constant->size() < 2) continue;
      const Tensor& t = *g_.value(v).constant;
      for (std::int64_t i = 0; i < t.size(); ++i) {
        float value = 0;
        std::memcpy(&value, static_cast<const char*>(t.data()) + i * 4, sizeof(value));
        if (std::isfinite(value) && std::abs(value) > 65504.0F) return true;
      }
    }
    return false;
  }

  static bool named(const std::vector<std::string>& names, const std::string& name) {
    return !name.empty() && std::find(names.begin(), names.end(), name) != names.end();
  }

  bool squares(const Node& n) const {
    if (options_.to != DataType::float16) return false;  // bfloat16 has float32's range
    if (n.op_type == "Mul") return n.inputs.size() == 2 && n.inputs[0] == n.inputs[1];
    if (n.op_type == "Exp" || n.op_type == "ReduceSumSquare") return true;
    if (n.op_type != "Pow" || n.inputs.size() != 2) return false;
    const auto& exponent = g_.value(n.inputs[1]).constant;
    return !exponent || exponent->size() != 1 || std::abs(element_as_double(exponent->aligned(), 0)) > 1;
  }

  // Whether the node's float32 inputs, apart from constants, are all in `set`, and there is at least one.
  bool reads_only(const Node& n, const std::vector<bool>& set) const {
    bool any = false;
    for (const ValueId v : n.inputs) {
      if (v == kNoValue || !is_float32(g_, v) || constant_of(g_, v) != nullptr) continue;
      if (!set[v]) return false;
      any = true;
    }
    return any;
  }

  std::string first_reason(NodeId id) const {
    const Node& n = g_.node(id);
    const std::string op = n.domain.empty() ? n.op_type : n.domain + "." + n.op_type;
    if (named(options_.keep_nodes, n.name) || named(options_.keep_ops, op)) return "as asked";
    if (!n.subgraphs.empty()) return "values that enter or leave its subgraphs are unchanged";
    for (const auto* list : {&n.inputs, &n.outputs}) {
      for (const ValueId v : *list) {
        if (v != kNoValue && !g_.value(v).type.is_tensor() && holds_float32(g_.value(v).type))
          return "it handles sequences or optional values";
      }
    }
    if (n.domain == "ai.onnx.ml") return "thresholds of classical models need their digits";
    if (constants_too_large(n)) return "its constants exceed the range of float16";
    if (!n.domain.empty()) return "";
    const auto rule = std::find_if(kDigits.begin(), kDigits.end(), [&](const Rule& r) { return r.op == n.op_type; });
    if (rule != kDigits.end()) return std::string(rule->why);
    if (!defined_for(n, options_.to)) return lacks_type(n, options_.to);
    if (reads_only(n, dequantised_)) return kQuantised;
    const bool hands_on = has_word(kHandOn, n.op_type);
    if (squares(n) || (hands_on && reads_only(n, large_))) return kSquares;
    const bool extents =
        std::any_of(n.outputs.begin(), n.outputs.end(), [&](ValueId v) { return v != kNoValue && from_extents_[v]; });
    const bool floats =
        std::any_of(n.outputs.begin(), n.outputs.end(), [&](ValueId v) { return v != kNoValue && is_float32(g_, v); });
    return extents && floats ? "it computes only with extents" : "";
  }

  // Positions become angles: values that are made of integers and read only by nodes that stay float32 stay, too.
  void keep_what_leads_to_kept() {
    const Readers readers(g_);
    for (NodeId id = static_cast<NodeId>(g_.nodes().size()); id-- > 0;) {
      const Node& n = g_.node(id);
      if (n.removed || !why_[id].empty()) continue;
      bool floats = false;
      bool stays = true;
      for (const ValueId v : n.outputs) {
        if (v == kNoValue || !is_float32(g_, v)) continue;
        floats = true;
        stays = stays && from_integers_[v] && !is_output(g_, v) && !readers.of(v).empty() &&
                std::ranges::all_of(readers.of(v), [&](NodeId user) { return !why_[user].empty(); });
      }
      if (floats && stays) why_[id] = "it leads to nodes that are not converted";
    }
  }

  const Graph& g_;
  const NarrowOptions& options_;
  std::vector<std::string> why_;
  // Sets of values, by ValueId: made of extents only; made of integers; perhaps too large for float16; from a DequantizeLinear
  // that stays.
  std::vector<bool> from_extents_, from_integers_, large_, dequantised_;
};

}  // namespace

bool is_float32(const Graph& graph, ValueId v) {
  const Type& type = graph.value(v).type;
  return type.is_tensor() && type.elem == DataType::float32;
}

std::string lacks_type(const Node& node, DataType type) {
  return fmt::format("{} (opset {}) is not defined for {}", node.op_type, node.version, name(type));
}

std::vector<std::string> reasons_to_stay(const Graph& graph, const NarrowOptions& options) {
  return Chooser(graph, options).run();
}

}  // namespace sdx
