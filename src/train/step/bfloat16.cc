#include "train/step/bfloat16.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "graph/edit.h"
#include "kernels/cpu/gemm/gemm_bf16.h"
#include "ops/matrix/signatures.h"

namespace sdx::train {
namespace {

// With less work than this, rounding and packing take as long as the product.
constexpr std::int64_t kLeastRows = 16, kLeastProducts = 1 << 18;

bool is_float_matrix(const Graph& graph, ValueId v) {
  const Type& t = graph.value(v).type;
  return t.has_static_shape() && t.elem == DataType::float32 && t.shape->size() == 2;
}

Shape extents_of(const Graph& graph, ValueId v) { return to_shape(*graph.value(v).type.shape); }

struct Product {
  ValueId x = kNoValue, w = kNoValue, bias = kNoValue;
  bool trans_x = false, trans_w = false;
};

std::optional<Product> product_of(const Graph& graph, const Node& node) {
  if (node.removed || node.inputs.size() < 2 || !is_float_matrix(graph, node.inputs[1])) return std::nullopt;
  Product p{node.inputs[0], node.inputs[1], kNoValue, false, false};
  const Type& x = graph.value(p.x).type;
  if (!x.has_static_shape() || x.elem != DataType::float32 || x.shape->empty()) return std::nullopt;
  if (x.shape->size() >= 2 && node.domain.empty() && node.op_type == "MatMul") return p;
  if (x.shape->size() >= 2 && node.domain == "com.microsoft" && node.op_type == "FusedMatMul") {
    const auto attrs = ops::parse<ops::FusedMatMulAttrs>(node);
    p.trans_x = attrs.trans_a;
    p.trans_w = attrs.trans_b;
    const bool plain = attrs.alpha == 1 && !attrs.trans_batch_a && !attrs.trans_batch_b;
    return plain && (!p.trans_x || x.shape->size() == 2) ? std::optional(p) : std::nullopt;
  }
  const bool gemm =
      (node.domain.empty() && node.op_type == "Gemm") || (node.domain == "com.microsoft" && node.op_type == "FusedGemm");
  if (!gemm) return std::nullopt;
  const auto attrs = ops::parse<ops::GemmAttrs>(node);
  if (attrs.alpha != 1 || x.shape->size() != 2) return std::nullopt;
  p.trans_x = attrs.trans_a;
  p.trans_w = attrs.trans_b;
  if (node.inputs.size() > 2 && node.inputs[2] != kNoValue && attrs.beta != 0) {
    const Type& c = graph.value(node.inputs[2]).type;
    const std::int64_t n = extents_of(graph, p.w)[p.trans_w ? 0 : 1];
    if (attrs.beta != 1 || !c.has_static_shape() || to_shape(*c.shape) != Shape{n}) return std::nullopt;
    p.bias = node.inputs[2];
  }
  return p;
}

bool is_worth_it(const Graph& graph, const Product& p) {
  const Shape x = extents_of(graph, p.x), w = extents_of(graph, p.w);
  const std::int64_t k = w[p.trans_w ? 1 : 0], n = w[p.trans_w ? 0 : 1];
  const std::int64_t rows = k == 0 ? 0 : element_count(x) / k;
  return rows >= kLeastRows && k >= 8 && n >= 8 && rows * k * n >= kLeastProducts;
}

ValueId transposed(Graph& graph, ValueId x) {
  const Shape shape = extents_of(graph, x);
  return add_node(graph, make_node({}, "Transpose", 13, {x}, {{"perm", std::vector<std::int64_t>{1, 0}}}), {},
                  Type::tensor(DataType::float32, to_sym({shape[1], shape[0]})));
}

void replace(Graph& graph, NodeId id, Product p) {
  Node node = graph.node(id);
  graph.remove_node(id);
  node.domain = "sdx";
  node.op_type = "Linear";
  node.version = 1;
  for (const char* name : {"alpha", "beta", "transA", "transB", "transBatchA", "transBatchB"}) node.attributes.erase(name);
  node.attributes.set("bfloat16", std::int64_t{1});
  node.attributes.set("transB", std::int64_t{p.trans_w});
  node.inputs = {p.trans_x ? transposed(graph, p.x) : p.x, p.w};
  if (p.bias != kNoValue) node.inputs.push_back(p.bias);
  graph.add_node(std::move(node));
}

}  // namespace

bool has_bfloat16_products() { return cpu::has_bf16_dots(); }

void use_bfloat16(Graph& graph) {
  const auto count = static_cast<NodeId>(graph.nodes().size());
  for (NodeId id = 0; id < count; ++id) {
    const auto product = product_of(graph, graph.node(id));
    if (product && is_worth_it(graph, *product)) replace(graph, id, *product);
  }
  graph.compact();
}

}  // namespace sdx::train
