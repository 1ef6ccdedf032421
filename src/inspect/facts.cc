#include "inspect/facts.h"

#include <sdx/runner.hpp>
#include <string_view>

#include "base/checked.h"
#include "base/words.h"
#include "onnx/reader.h"
#include "session/pipeline.h"
#include "session/specs.h"

namespace sdx::inspect {
namespace {

constexpr std::int64_t kUnknown = -1;

std::optional<Shape> shape_of(const Graph& g, const Node& n, bool output, std::size_t index) {
  const auto& list = output ? n.outputs : n.inputs;
  if (index >= list.size() || list[index] == kNoValue) return std::nullopt;
  const ValueInfo& v = g.value(list[index]);
  if (v.constant) return v.constant->shape();
  if (!v.type.has_static_shape()) return std::nullopt;
  Shape shape;
  for (const Dim& d : *v.type.shape) shape.push_back(d.value());
  return shape;
}

// Shapes come from the file: a product beyond 64 bits counts as not known.
std::int64_t product(std::initializer_list<std::int64_t> factors) {
  std::int64_t out = 1;
  for (const std::int64_t f : factors) {
    const auto next = checked_mul(out, f);
    if (f < 0 || !next) return kUnknown;
    out = *next;
  }
  return out;
}

std::int64_t count(const Shape& shape, std::size_t from = 0) {
  std::int64_t out = 1;
  for (std::size_t i = from; i < shape.size(); ++i) {
    out = product({out, shape[i]});
    if (out < 0) return kUnknown;
  }
  return out;
}

bool moves_data_only(const std::string& op) {
  constexpr std::string_view kNames =
      "Constant ConstantOfShape Identity Reshape Transpose Squeeze Unsqueeze Flatten Slice Split Concat Gather GatherElements "
      "GatherND Expand Tile Pad Shape Size Dropout DepthToSpace SpaceToDepth If Loop Scan SequenceConstruct SequenceAt "
      "SequenceEmpty SequenceInsert SequenceErase SequenceLength ConcatFromSequence SplitToSequence Optional OptionalGetElement "
      "OptionalHasElement ScatterND ScatterElements Scatter ReverseSequence OneHot EyeLike NonZero Compress";
  return has_word(kNames, op);
}

bool is_convolution(const std::string& op) {
  return op == "Conv" || op == "ConvInteger" || op == "QLinearConv" || op == "FusedConv" || op == "NhwcConv";
}

// Two operations for each of the output's elements and the weights that it meets.
std::int64_t convolution(const Graph& g, const Node& n) {
  const auto weights = shape_of(g, n, false, n.op_type == "QLinearConv" ? 3 : 1);
  const auto out = shape_of(g, n, true, 0);
  if (!weights || !out || weights->empty()) return kUnknown;
  return product({2, count(*out), count(*weights, 1)});
}

std::int64_t transposed_convolution(const Graph& g, const Node& n) {
  const auto weights = shape_of(g, n, false, 1);
  const auto in = shape_of(g, n, false, 0);
  if (!weights || !in || weights->empty()) return kUnknown;
  return product({2, count(*in), count(*weights, 1)});
}

// Two products; softmax between them is left out, as it is elsewhere in the literature.
std::int64_t attention(const Graph& g, const Node& n) {
  const auto q = shape_of(g, n, false, 0), k = shape_of(g, n, false, 1), past = shape_of(g, n, false, 4);
  const auto out = shape_of(g, n, true, 0);
  if (!q || !k || !out || (k->size() != 3 && k->size() != 4)) return kUnknown;
  const std::int64_t keys = (*k)[k->size() - 2];
  const auto total = checked_add(keys, past && past->size() == 4 ? (*past)[2] : 0);
  const auto width = checked_add(count(*q), count(*out));
  return total && width ? product({2, *total, *width}) : kUnknown;
}

std::int64_t matrix_product(const Graph& g, const Node& n) {
  const auto a = shape_of(g, n, false, 0);
  const auto out = shape_of(g, n, true, 0);
  if (!a || !out || a->empty()) return kUnknown;
  const AttributeValue* held = n.attributes.find("transA");
  const auto* transposed = held != nullptr ? std::get_if<std::int64_t>(held) : nullptr;
  const bool flip = transposed != nullptr && *transposed != 0;
  return product({2, count(*out), flip ? a->front() : a->back()});
}

// Weights meet every step of every sequence once.
std::int64_t recurrent(const Graph& g, const Node& n) {
  const auto x = shape_of(g, n, false, 0);
  const auto w = shape_of(g, n, false, 1);
  const auto r = shape_of(g, n, false, 2);
  if (!x || x->size() < 2 || !w || !r) return kUnknown;
  const auto weights = checked_add(count(*w), count(*r));
  return weights && count(*w) >= 0 && count(*r) >= 0 ? product({2, (*x)[0], (*x)[1], *weights}) : kUnknown;
}

void count_nodes(const Graph& graph, ModelFacts& facts) {
  for (const Node& n : graph.nodes()) {
    ++facts.nodes;
    ++facts.operators[n.domain.empty() ? n.op_type : n.domain + "." + n.op_type];
    for (const Subgraph& s : n.subgraphs) count_nodes(*s.graph, facts);
  }
  for (const ValueInfo& v : graph.values()) {
    if (!v.constant) continue;
    facts.parameters += v.constant->size();
    facts.parameter_bytes += static_cast<std::int64_t>(v.constant->bytes());
  }
}

void count_flops(const Graph& graph, ModelFacts& facts) {
  for (const Node& n : graph.nodes()) {
    const std::int64_t flops = node_flops(graph, n);
    const auto sum = flops < 0 ? std::nullopt : checked_add(facts.flops, flops);
    if (sum) {
      facts.flops = *sum;
    } else {
      ++facts.nodes_without_flops;
    }
    for (const Subgraph& s : n.subgraphs) count_flops(*s.graph, facts);
  }
}

}  // namespace

std::int64_t node_flops(const Graph& g, const Node& n) {
  const std::string& op = n.op_type;
  if (is_convolution(op)) return convolution(g, n);
  if (op == "ConvTranspose") return transposed_convolution(g, n);
  if (op == "MatMul" || op == "Gemm" || op == "MatMulInteger" || op == "QLinearMatMul" || op == "FusedMatMul" ||
      op == "FusedGemm" || op == "MatMulNBits" || op == "QGemm" || op == "Linear") {
    return matrix_product(g, n);
  }
  if (op == "Attention" && n.domain != "com.microsoft") return attention(g, n);
  if (op == "LSTM" || op == "GRU" || op == "RNN") return recurrent(g, n);
  if (moves_data_only(op)) return 0;
  const auto out = shape_of(g, n, true, 0);
  return out ? count(*out) : kUnknown;
}

ModelFacts model_facts(const std::filesystem::path& path, const SessionOptions& options) {
  ModelFacts facts;
  Model model = read_model(path);
  std::error_code ignored;
  facts.file_bytes = std::filesystem::file_size(path, ignored);
  facts.ir_version = model.ir_version;
  facts.producer_name = model.producer_name;
  facts.producer_version = model.producer_version;
  facts.domain = model.domain;
  facts.description = model.doc;
  facts.graph_name = model.graph.name;
  facts.model_version = model.model_version;
  for (const auto& [domain, version] : model.opsets) facts.opsets[domain.empty() ? "ai.onnx" : domain] = version;
  facts.functions = static_cast<std::int64_t>(model.functions.size());
  facts.metadata = model.metadata;
  count_nodes(model.graph, facts);
  session::prepare(model, options);
  count_flops(model.graph, facts);
  facts.warnings = model.warnings;
  return facts;
}

}  // namespace sdx::inspect

namespace sdx {

std::vector<ValueSpec> model_inputs(const std::filesystem::path& path, const SessionOptions& options) {
  Model model = read_model(path);
  session::bind_dimensions(model.graph, options.dimensions);
  return session::input_specs(model.graph);
}

}  // namespace sdx
