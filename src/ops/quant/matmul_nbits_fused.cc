// com.microsoft 1: MatMulNBitsMlp: activation(A * gate) * (A * up); MatMulNBitsQkv: three products of one A; both after an
// optional sum with a residual and normalisation by the root mean square.

#include <cmath>
#include <vector>

#include "ops/delegate.h"
#include "ops/math/convert.h"
#include "ops/op.h"
#include "ops/signature.h"

namespace sdx::ops {
namespace {

enum In : std::size_t { kA, kSkip, kNorm, kFirst };  // then, for each product: weights, scales, bias

struct FusedNBitsAttrs {
  std::int64_t k = 0, block_size = 0, bits = 4;
  float epsilon = 1e-5F;
  std::int64_t n = 0;            // of MatMulNBitsMlp's products
  std::string_view activation;   // between them
  std::int64_t nq = 0, nkv = 0;  // of MatMulNBitsQkv's

  void fields(auto& f, const OpId& op) {
    f.required("K", k);
    f.required("block_size", block_size);
    f("bits", bits);
    f.unread("accuracy_level", AttrKind::i);
    f("epsilon", epsilon);
    if (op.name == "MatMulNBitsMlp") {
      f.required("N", n);
      f.required("activation", activation);
    } else {
      f.required("Nq", nq);
      f.required("Nkv", nkv);
    }
  }
};

struct Product {
  std::size_t input;
  std::int64_t columns;
};

std::vector<Product> products_of(const Node& node) {
  const auto attr = parse<FusedNBitsAttrs>(node);
  if (node.op_type == "MatMulNBitsMlp") return {{kFirst, attr.n}, {kFirst + 3, attr.n}};
  return {{kFirst, attr.nq}, {kFirst + 3, attr.nkv}, {kFirst + 6, attr.nkv}};
}

Delegate product(const Node& node, std::int64_t columns) {
  const auto attr = parse<FusedNBitsAttrs>(node);
  Attributes inner;
  inner.set("K", attr.k);
  inner.set("N", columns);
  inner.set("bits", attr.bits);
  inner.set("block_size", attr.block_size);
  return Delegate("com.microsoft", "MatMulNBits", 1, std::move(inner));
}

void check_activation(const Node& node) {
  if (node.op_type != "MatMulNBitsMlp") return;
  const std::string_view word = parse<FusedNBitsAttrs>(node).activation;
  if (word != "silu" && word != "swish") fail(ErrorCode::not_implemented, "activation '{}' is not supported; 'silu' is", word);
}

void infer_fused(InferContext& c) {
  check_activation(c.node());
  const std::vector<Product> products = products_of(c.node());
  std::vector<Type> types;
  for (const Product& p : products)
    types.push_back(product(c.node(), p.columns).infer({c.type(kA), Type{}, Type{}, Type{}, Type{}, Type{}}));
  const bool mlp = products.size() == 2;
  for (std::size_t i = 0; i < (mlp ? 1 : products.size()); ++i) c.output(i, types[i]);
  c.output(mlp ? 1 : 3, c.type(kA));
}

Tensor optional(OpContext& c, std::size_t i) { return c.has_input(i) ? c.input(i) : Tensor(); }

// A plus skip, normalised; gives the sum away as the operator's last output.
Tensor normalised(OpContext& c, std::size_t sum_output) {
  const Tensor& a = c.input(kA);
  Tensor x = converted(a, DataType::float32).clone();
  auto* data = static_cast<float*>(x.mutable_data());
  if (c.has_input(kSkip)) {
    const Tensor skip = converted(c.input(kSkip), DataType::float32);
    if (skip.shape() != a.shape()) c.fail("skip must have A's shape {}, received {}", to_string(a.shape()), skip.type_string());
    for (std::int64_t i = 0; i < x.size(); ++i) data[i] += static_cast<const float*>(skip.data())[i];
  }
  if (c.wants_output(sum_output)) c.set_output(sum_output, a.dtype() == DataType::float32 ? x.clone() : converted(x, a.dtype()));
  if (c.has_input(kNorm)) {
    const Tensor scale = converted(c.input(kNorm), DataType::float32);
    const std::int64_t n = a.rank() > 0 ? a.shape().back() : 0;
    if (n < 1 || scale.size() != n) c.fail("norm_scale must have {} elements, received {}", n, scale.type_string());
    const float epsilon = parse<FusedNBitsAttrs>(c).epsilon;
    for (std::int64_t i = 0; i < x.size(); i += n) {
      double sum = 0;
      for (std::int64_t k = 0; k < n; ++k) sum += static_cast<double>(data[i + k]) * static_cast<double>(data[i + k]);
      const auto factor = static_cast<float>(1 / std::sqrt(sum / static_cast<double>(n) + static_cast<double>(epsilon)));
      for (std::int64_t k = 0; k < n; ++k) data[i + k] *= factor * static_cast<const float*>(scale.data())[k];
    }
  }
  return a.dtype() == DataType::float32 ? x : converted(x, a.dtype());
}

void run_fused(OpContext& c) {
  check_activation(c.node());
  const std::vector<Product> products = products_of(c.node());
  const bool mlp = products.size() == 2;
  const Tensor a = normalised(c, mlp ? 1 : 3);
  std::vector<Tensor> results;
  for (const Product& p : products) {
    results.push_back(product(c.node(), p.columns)
                          .run(c, {a, c.input(p.input), c.input(p.input + 1), Tensor(), Tensor(), optional(c, p.input + 2)}));
  }
  if (!mlp) {
    for (std::size_t i = 0; i < results.size(); ++i) c.set_output(i, std::move(results[i]));
    return;
  }
  const Tensor gate = converted(results[0], DataType::float32), up = converted(results[1], DataType::float32);
  Tensor y(DataType::float32, gate.shape());
  for (std::int64_t i = 0; i < y.size(); ++i) {
    const float g = static_cast<const float*>(gate.data())[i];
    static_cast<float*>(y.mutable_data())[i] = g / (1 + std::exp(-g)) * static_cast<const float*>(up.data())[i];
  }
  c.set_output(0, a.dtype() == DataType::float32 ? y : converted(y, a.dtype()));
}

}  // namespace

void register_matmul_nbits_fused(OpTable& t) {
  constexpr TypeSet kFloat = set_of(DataType::float32, DataType::float16, DataType::bfloat16);
  constexpr Arity kOptional = Arity::optional;
  for (const bool mlp : {true, false}) {
    OpDef d("com.microsoft", mlp ? "MatMulNBitsMlp" : "MatMulNBitsQkv", 1);
    d.in("A", "T1", kFloat).in("skip", "T1", kFloat, kOptional).in("norm_scale", "T1", kFloat, mlp ? kOptional : Arity::required);
    for (const std::string& part : mlp ? std::vector<std::string>{"gate", "up"} : std::vector<std::string>{"q", "k", "v"}) {
      d.in(part + "_B", "T2", bit(DataType::uint8))
          .in(part + "_scales", "T1", kFloat)
          .in(part + "_bias", "T1", kFloat, kOptional);
    }
    for (const char* name : mlp ? std::vector<const char*>{"Y"} : std::vector<const char*>{"Q", "K", "V"})
      d.out(name, "T1", kFloat);
    d.out("input_skip_bias_sum", "T1", kFloat, kOptional);
    t.add(std::move(d.attrs<FusedNBitsAttrs>()).infer_with(infer_fused).run_with(run_fused));
  }
}

}  // namespace sdx::ops
