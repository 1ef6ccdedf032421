#pragma once
// Constant scales, zero points and 8-bit weights of quantised operators.

#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "kernels/cpu/conv/int8/quant_nhwc.h"
#include "kernels/cpu/conv/int8/quant_nhwc_pack.h"
#include "kernels/cpu/quant/quant.h"
#include "ops/quant/dynamic_quant.h"
#include "ops/quant/quant_codec.h"
#include "providers/cpu/kernel_table.h"
#include "providers/cpu/packed.h"

namespace sdx::cpu {

inline bool is_byte(DataType type) { return type == DataType::int8 || type == DataType::uint8; }

// Results of an 8-bit type, with its whole range.
inline void give_bytes(QEpilogue& epilogue, DataType to, std::int32_t zero_point) {
  epilogue.output = to == DataType::int8 ? QEpilogue::Output::s8 : QEpilogue::Output::u8;
  epilogue.zero_point = zero_point;
  epilogue.low = to == DataType::int8 ? -128 : 0;
  epilogue.high = to == DataType::int8 ? 127 : 255;
}

// The values of a constant float32 or int32 input of one or `count` elements; none when it is not like that. The tensor may lie
// unaligned in the model file.
template <class T>
std::optional<std::vector<T>> constant_values(const LowerContext& c, std::size_t i, DataType type, std::int64_t count = 1) {
  const Tensor* t = c.constant(i);
  if (t == nullptr || t->dtype() != type || (t->size() != 1 && t->size() != count) || t->rank() > 1) return std::nullopt;
  std::vector<T> values(static_cast<std::size_t>(t->size()));
  std::memcpy(values.data(), t->data(), values.size() * sizeof(T));
  return values;
}

inline std::optional<std::vector<float>> constant_scales(const LowerContext& c, std::size_t i, std::int64_t count = 1) {
  return constant_values<float>(c, i, DataType::float32, count);
}

// Zero points of an 8-bit operand of type `type`; {0} when left out.
inline std::optional<std::vector<std::int32_t>> constant_zeros(const LowerContext& c, std::size_t i, DataType type,
                                                               std::int64_t count = 1) {
  if (!c.has_input(i)) return std::vector<std::int32_t>{0};
  const Tensor* t = c.constant(i);
  if (t == nullptr || t->dtype() != type || (t->size() != 1 && t->size() != count) || t->rank() > 1) return std::nullopt;
  return ops::decode_ints(*t);
}

// True when input i is known to have one element.
inline bool is_single(const LowerContext& c, std::size_t i) {
  const SymShape* s = c.shape(i);
  return s != nullptr && all_const(*s) && element_count(to_shape(*s)) == 1;
}

// A single run-time value of an 8-bit type.
inline std::int32_t byte_value(const Tensor& t) {
  return t.dtype() == DataType::int8 ? *static_cast<const std::int8_t*>(t.data()) : *static_cast<const std::uint8_t*>(t.data());
}

// A constant right operand [k, n] of a matrix product.
struct ByteMatrix {
  std::int64_t k = 0, n = 0;
  bool wide = false;
  Packed packed;

  // c [m, n] = epilogue(a [m, k] minus a_zero, times this).
  void multiply(const void* a, bool a_signed, std::int32_t a_zero, std::int64_t m, const QEpilogue& epilogue, void* c) const {
    qnhwc_product({a, a_signed, k, m, k, a_zero}, n, packed.data(), wide, epilogue, c, n);
  }
};

// The position of a matrix: `part` matrices into the weights, [k, n] or [n, k] if trans.
struct MatrixSource {
  const Tensor& weights;
  const Tensor* zeros;  // may be null
  std::int64_t part;
  bool trans;
};

// zeros: the matrix's own zero points, one or n.
inline ByteMatrix packed_matrix(LowerContext& c, const MatrixSource& from, std::int64_t k, std::int64_t n,
                                const std::vector<std::int32_t>& zeros) {
  ByteMatrix m;
  m.k = k;
  m.n = n;
  const ConvShape shape = matrix_shape(k, n);
  QWeights weights{nullptr, from.weights.dtype() == DataType::int8, zeros.data(), static_cast<std::int64_t>(zeros.size()),
                   !from.trans};
  m.wide = qnhwc_is_wide(shape, weights);
  weights.data = static_cast<const char*>(from.weights.data()) + from.part * k * n;
  m.packed = c.pack(
      {&from.weights, from.zeros}, qnhwc_packed_bytes(shape, weights, m.wide),
      cache::PackKey("qmatrix-4", weights.is_signed, m.wide, qnhwc_order(shape, weights, m.wide), from.trans, from.part, k, n),
      [&](float* to) { qnhwc_pack(shape, weights, m.wide, to); });
  return m;
}

// Packs input i ([k, n]; [n, k] when trans), with its zero points in input zero_input. None: refused, and why is said.
inline std::optional<ByteMatrix> byte_matrix(LowerContext& c, std::size_t i, std::size_t zero_input, bool trans = false) {
  const auto refuse = [&](const char* why) {
    c.refuse(why);
    return std::nullopt;
  };
  const Tensor* w = c.constant(i);
  if (w == nullptr) return refuse("the weights are not constant");
  if (!is_byte(w->dtype()) || w->rank() != 2 || w->size() == 0) return refuse("the weights are not a matrix of 8-bit integers");
  const std::int64_t k = w->shape()[trans ? 1 : 0], n = w->shape()[trans ? 0 : 1];
  const auto zeros = constant_zeros(c, zero_input, w->dtype(), n);
  if (!zeros) return refuse("the weights' zero points are not constant, or not one or one for each column");
  const Tensor* zero = c.has_input(zero_input) ? c.constant(zero_input) : nullptr;
  return packed_matrix(c, {*w, zero, 0, trans}, k, n, *zeros);
}

// Scale and zero point of values as DynamicQuantizeLinear has them, for uint8.
inline ops::DynamicScale dynamic_scale_of(const float* x, std::int64_t count) {
  float low = 0, high = 0;
  if (count > 0) min_max_f32(x, count, &low, &high);
  return ops::dynamic_scale(low < 0 ? low : 0.0F, high > 0 ? high : 0.0F, DataType::uint8);
}

}  // namespace sdx::cpu
