// Matrix products: MatMul, Gemm, FusedGemm, sdx Linear.

#include <algorithm>

#include "base/error.h"
#include "ops/math/broadcast.h"
#include "ops/matrix/matmul_reference.h"
#include "ops/matrix/signatures.h"
#include "ops/tensor/axes.h"
#include "providers/vulkan/lowering/activation.h"
#include "providers/vulkan/lowering/strided.h"
#include "providers/vulkan/lowering/tile.h"
#include "providers/vulkan/operators.h"

namespace sdx::vulkan {
namespace {

struct Matrix {
  Operand operand;
  std::int64_t row, column;        // steps
  std::int64_t batch[2] = {0, 0};  // steps
  std::uint64_t offset = 0;        // bytes
};

struct Product {
  Matrix a, b;
  Operand out;
  std::uint64_t out_offset = 0;
  std::int64_t m, n, k;
  std::int64_t batch[2] = {1, 1};
  bool has_bias = false, has_residual = false;
  Operand bias = 0, residual = 0;
  std::int64_t z_row = 0, z_column = 0;
  float alpha = 1, beta = 1;
  FunctionSpec function{};
};

void emit_product(Emitter& e, const Product& p) {
  const Tile tile = tile_for(p.m, p.n);
  Dispatch d(Shader::product, {tile.rows, tile.columns, static_cast<std::uint32_t>(p.function.function), p.has_bias ? 1U : 0U,
                               p.has_residual ? 1U : 0U});
  d.read(p.a.operand, p.a.offset).read(p.b.operand, p.b.offset).write(p.out, p.out_offset);
  p.has_bias ? d.read(p.bias) : d.no_address();
  p.has_residual ? d.read(p.residual) : d.no_address();
  d.word(p.m).word(p.n).word(p.k).word(p.a.row).word(p.a.column).word(p.b.row).word(p.b.column).word(p.z_row).word(p.z_column);
  d.word(p.batch[1]).word(p.a.batch[0]).word(p.a.batch[1]).word(p.b.batch[0]).word(p.b.batch[1]);
  d.number(p.alpha).number(p.beta).number(p.function.alpha).number(p.function.beta);
  const std::int64_t batches = p.batch[0] * p.batch[1];
  e.dispatch_groups(std::move(d), tiles(p.n, tile.columns), tiles(p.m, tile.rows), batches,
                    2 * static_cast<std::uint64_t>(p.m) * static_cast<std::uint64_t>(p.n) * static_cast<std::uint64_t>(p.k) *
                        static_cast<std::uint64_t>(batches));
}

// Further leading axes than the shader has are taken one after the other.
void emit_batches(Emitter& e, Product p, std::vector<StridedAxis> axes) {
  if (axes.size() > 2) {
    const StridedAxis outer = axes.front();
    axes.erase(axes.begin());
    std::int64_t inside = p.m * p.n;
    for (const StridedAxis& a : axes) inside *= a.extent;
    for (std::int64_t i = 0; i < outer.extent; ++i) {
      Product part = p;
      part.a.offset += static_cast<std::uint64_t>(i * outer.step[0]) * 4;
      part.b.offset += static_cast<std::uint64_t>(i * outer.step[1]) * 4;
      part.out_offset += static_cast<std::uint64_t>(i * inside) * 4;
      emit_batches(e, part, axes);
    }
    return;
  }
  if (axes.size() == 1) axes.insert(axes.begin(), StridedAxis{});
  for (std::size_t i = 0; i < 2; ++i) {
    p.batch[i] = axes[i].extent;
    p.a.batch[i] = axes[i].step[0];
    p.b.batch[i] = axes[i].step[1];
  }
  emit_product(e, p);
}

std::string refuse_matmul(const NodeFacts& n) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (n.rank(i) < 1) return "input " + std::to_string(i) + (n.rank(i) < 0 ? " has an unknown rank" : " is a scalar");
  }
  return n.all_floats();
}

void emit_matmul(Emitter& e, const Node& node) {
  const Shape a = e.shape(node.inputs[0]), b = e.shape(node.inputs[1]);
  const ops::MatMulPlan plan = ops::matmul_plan(a, b);
  Product p{{node.inputs[0], plan.k, 1}, {node.inputs[1], plan.n, 1}, node.outputs[0], 0, plan.m, plan.n, plan.k};
  if (element_count(plan.output) == 0) return;
  if (ops::product(plan.batch_b, 0, plan.batch_b.size()) == 1) {  // all of A's matrices are one
    p.m *= ops::product(plan.batch, 0, plan.batch.size());
    return emit_product(e, p);
  }
  const std::vector<std::int64_t> a_steps = broadcast_steps(plan.batch_a, plan.batch),
                                  b_steps = broadcast_steps(plan.batch_b, plan.batch);
  std::vector<StridedAxis> axes;
  for (std::size_t i = 0; i < plan.batch.size(); ++i) {
    axes.push_back({plan.batch[i], {a_steps[i] * plan.m * plan.k, b_steps[i] * plan.k * plan.n}});
  }
  emit_batches(e, p, merged(axes));
}

std::string refuse_gemm(const NodeFacts& n) {
  if (n.node().op_type == "FusedGemm") {
    if (std::string why = refuse_activation(n.node()); !why.empty()) return why;
  }
  if (n.rank(0) != 2 || n.rank(1) != 2) return "the operands are not known to be matrices";
  if (n.has(2) && (n.rank(2) < 0 || n.rank(2) > 2)) return "C has an unknown rank";
  return n.all_floats();
}

void emit_gemm(Emitter& e, const Node& node) {
  const auto attr = ops::parse<ops::GemmAttrs>(node);
  const Shape a = e.shape(node.inputs[0]), out = e.shape(node.outputs[0]);
  const std::int64_t m = out[0], n = out[1], k = attr.trans_a ? a[0] : a[1];
  Product p{{node.inputs[0], attr.trans_a ? 1 : k, attr.trans_a ? m : 1},
            {node.inputs[1], attr.trans_b ? 1 : n, attr.trans_b ? k : 1},
            node.outputs[0],
            0,
            m,
            n,
            k};
  e.check_size(node, 0, m * k);
  e.check_size(node, 1, k * n);
  p.alpha = attr.alpha;
  p.beta = attr.beta;
  if (e.has(node, 2)) {
    const Shape c = e.shape(node.inputs[2]);
    if (ops::broadcast_shapes(c, out) != out)
      fail(ErrorCode::runtime_failure, "C {} does not broadcast to {}", to_string(c), to_string(out));
    const std::vector<std::int64_t> steps = broadcast_steps(c, out);
    p.has_residual = true;
    p.residual = node.inputs[2];
    p.z_row = steps[0];
    p.z_column = steps[1];
  }
  if (node.op_type == "FusedGemm") p.function = fused_function(node);
  if (m * n > 0) emit_product(e, p);
}

std::string refuse_linear(const NodeFacts& n) {
  if (std::string why = refuse_activation(n.node()); !why.empty()) return why;
  if (n.rank(0) < 1 || n.rank(1) != 2) return "rank unknown or 0";
  // Narrow weights are widened as they are uploaded.
  const DataType w = n.elem(1);
  if (w == DataType::float16 || w == DataType::bfloat16) {
    if (!n.on_host(1)) return "narrow weights that are no constant";
    return n.is_float(0) && (!n.has(2) || n.is_float(2)) && (!n.has(3) || n.is_float(3)) ? "" : "an input is not float32";
  }
  return n.all_floats();
}

void emit_linear(Emitter& e, const Node& node) {
  using enum ops::LinearIn::Slot;
  const bool trans = ops::parse<ops::LinearAttrs>(node).trans_b;
  const Shape w = e.shape(node.inputs[kW]), out = e.shape(node.outputs[0]);
  const std::int64_t k = w[trans ? 1 : 0], n = w[trans ? 0 : 1];
  if (element_count(out) == 0) return;
  e.check_size(node, kX, element_count(out) / n * k);
  e.check_size(node, kB, n);
  e.check_size(node, kZ, element_count(out));
  Product p{
      {node.inputs[kX], k, 1}, {node.inputs[kW], trans ? 1 : n, trans ? k : 1}, node.outputs[0], 0, element_count(out) / n, n, k};
  p.function = fused_function(node);
  if (e.has(node, kB)) {
    p.has_bias = true;
    p.bias = node.inputs[kB];
  }
  if (e.has(node, kZ)) {
    p.has_residual = true;
    p.residual = node.inputs[kZ];
    p.z_row = n;
    p.z_column = 1;
  }
  emit_product(e, p);
}

}  // namespace

void add_products(Operators& all) {
  all.push_back({"", "MatMul", refuse_matmul, emit_matmul});
  all.push_back({"", "Gemm", refuse_gemm, emit_gemm});
  all.push_back({"com.microsoft", "FusedGemm", refuse_gemm, emit_gemm});
  all.push_back({"sdx", "Linear", refuse_linear, emit_linear});
}

}  // namespace sdx::vulkan
