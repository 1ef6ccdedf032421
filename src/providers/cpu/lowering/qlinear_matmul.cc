// QLinearMatMul, MatMulInteger, and com.microsoft QGemm, MatMulIntegerToFloat and DynamicQuantizeMatMul with constant weights.

#include <algorithm>

#include "ops/quant/signatures.h"
#include "providers/cpu/byte_operands.h"

namespace sdx::cpu {
namespace {

// Checks what all four operators need of the left operand.
bool takes_left(LowerContext& c) {
  if (c.shape(0) == nullptr || c.shape(0)->empty()) return c.refuse("the left operand's rank is not known, or 0"), false;
  return true;
}

// Returns the number of rows of the left operand, which form a single product. Checks extents that inference may not have known.
std::int64_t rows_of(const Tensor& a, const ByteMatrix& b) {
  if (a.shape().empty() || a.shape().back() != b.k) {
    fail(ErrorCode::runtime_failure, "a matrix product of {} and [{},{}]: inner extents differ", to_string(a.shape()), b.k, b.n);
  }
  return a.size() / b.k;
}

void multiply(const Tensor& a, std::int32_t a_zero, const ByteMatrix& b, const QEpilogue& epilogue, Tensor& c) {
  b.multiply(a.data(), a.dtype() == DataType::int8, a_zero, rows_of(a, b), epilogue, c.mutable_data());
}

class QLinearMatMulKernel : public Kernel {
 public:
  QLinearMatMulKernel(ByteMatrix b, std::int32_t a_zero, std::vector<float> scales, DataType to, std::int32_t y_zero)
      : b_(std::move(b)), a_zero_(a_zero), scales_(std::move(scales)) {
    give_bytes(epilogue_, to, y_zero);
    epilogue_.scale = scales_.data();
    epilogue_.scale_is_array = true;
  }
  std::string_view name() const override { return "qlinear-matmul-8"; }
  bool uses_input(std::size_t i) const override { return i == 0; }
  void run(const KernelContext& c) const override { multiply(c.input(0), a_zero_, b_, epilogue_, c.output(0)); }

 private:
  ByteMatrix b_;
  std::int32_t a_zero_;
  std::vector<float> scales_;
  QEpilogue epilogue_;
};

std::unique_ptr<Kernel> make_qlinear_matmul(LowerContext& c) {
  const DataType to = c.output(0).elem;
  if (!is_byte(c.dtype(0)) || !is_byte(to) || c.dtype(7) != to) return c.refuse("not 8 bits");
  if (!takes_left(c)) return nullptr;
  const auto a_scale = constant_scales(c, 1), y_scale = constant_scales(c, 6);
  const auto a_zero = constant_zeros(c, 2, c.dtype(0)), y_zero = constant_zeros(c, 7, to);
  if (!a_scale || !a_zero || !y_scale || !y_zero) return c.refuse("scales or zero points of a or y are not single constants");
  const std::int64_t n = c.constant(3) != nullptr && c.constant(3)->rank() == 2 ? c.constant(3)->shape()[1] : 0;
  const auto b_scale = constant_scales(c, 4, n);
  if (!b_scale) return c.refuse("b_scale is not constant, or not one or one for each column");
  auto b = byte_matrix(c, 3, 5);
  if (!b) return nullptr;
  // In the reference kernel's order of operations, so that both round alike.
  std::vector<float> scales(static_cast<std::size_t>(n));
  for (std::size_t j = 0; j < scales.size(); ++j) {
    scales[j] = (*a_scale)[0] * (*b_scale)[b_scale->size() == 1 ? 0 : j] / (*y_scale)[0];
  }
  return std::make_unique<QLinearMatMulKernel>(std::move(*b), (*a_zero)[0], std::move(scales), to, (*y_zero)[0]);
}

class MatMulIntegerKernel : public Kernel {
 public:
  explicit MatMulIntegerKernel(ByteMatrix b) : b_(std::move(b)) {}
  std::string_view name() const override { return "matmul-integer-8"; }
  bool uses_input(std::size_t i) const override { return i == 0 || i == 2; }
  void run(const KernelContext& c) const override {
    multiply(c.input(0), c.has_input(2) ? byte_value(c.input(2)) : 0, b_, QEpilogue{}, c.output(0));
  }

 private:
  ByteMatrix b_;
};

std::unique_ptr<Kernel> make_matmul_integer(LowerContext& c) {
  if (!is_byte(c.dtype(0))) return c.refuse("not 8 bits");
  if (!takes_left(c)) return nullptr;
  if (c.has_input(2) && !is_single(c, 2)) return c.refuse("a_zero_point is not known to be one number");
  auto b = byte_matrix(c, 1, 3);
  if (!b) return nullptr;
  return std::make_unique<MatMulIntegerKernel>(std::move(*b));
}

// Makes the epilogue for float results: the product of both scales for each column, in the workspace.
QEpilogue to_float(const KernelContext& c, std::int64_t n, float a_scale, const std::vector<float>& b_scale, std::size_t bias) {
  auto* scales = static_cast<float*>(c.workspace);
  for (std::int64_t j = 0; j < n; ++j) scales[j] = a_scale * b_scale[b_scale.size() == 1 ? 0 : static_cast<std::size_t>(j)];
  QEpilogue e;
  e.output = QEpilogue::Output::f32;
  e.scale = scales;
  e.scale_is_array = true;
  if (c.has_input(bias)) e.bias_f32 = c.in<float>(bias);
  return e;
}

// Tells whether input i is left out or a float32 vector of n elements.
bool is_bias(const LowerContext& c, std::size_t i, std::int64_t n) {
  if (!c.has_input(i)) return true;
  const SymShape* s = c.shape(i);
  return c.dtype(i) == DataType::float32 && s != nullptr && all_const(*s) && element_count(to_shape(*s)) == n;
}

std::size_t scales_bytes(const ByteMatrix& b) { return static_cast<std::size_t>((b.n + 15) / 16 * 16) * sizeof(float); }

class MatMulToFloatKernel : public Kernel {
 public:
  MatMulToFloatKernel(ByteMatrix b, std::vector<float> b_scale) : b_(std::move(b)), b_scale_(std::move(b_scale)) {}
  std::string_view name() const override { return "matmul-integer-to-f32"; }
  bool uses_input(std::size_t i) const override { return i != 1 && i != 3 && i != 5; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    c.workspace_bytes = scales_bytes(b_);
    return nullptr;
  }
  void run(const KernelContext& c) const override {
    multiply(c.input(0), c.has_input(4) ? byte_value(c.input(4)) : 0, b_, to_float(c, b_.n, *c.in<float>(2), b_scale_, 6),
             c.output(0));
  }

 private:
  ByteMatrix b_;
  std::vector<float> b_scale_;
};

std::unique_ptr<Kernel> make_matmul_to_float(LowerContext& c) {
  if (!is_byte(c.dtype(0)) || c.dtype(2) != DataType::float32) return c.refuse("not from 8 bits to float32");
  if (!takes_left(c)) return nullptr;
  if (!is_single(c, 2) || (c.has_input(4) && !is_single(c, 4))) return c.refuse("the left operand's scale is not single");
  const std::int64_t n = c.constant(1) != nullptr && c.constant(1)->rank() == 2 ? c.constant(1)->shape()[1] : 0;
  auto b_scale = constant_scales(c, 3, n);
  if (!b_scale) return c.refuse("b_scale is not constant, or not one or one for each column");
  if (!is_bias(c, 6, n)) return c.refuse("the bias is not known to be one float32 for each column");
  auto b = byte_matrix(c, 1, 5);
  if (!b) return nullptr;
  return std::make_unique<MatMulToFloatKernel>(std::move(*b), std::move(*b_scale));
}

class DynamicMatMulKernel : public Kernel {
 public:
  DynamicMatMulKernel(ByteMatrix b, std::vector<float> b_scale) : b_(std::move(b)), b_scale_(std::move(b_scale)) {}
  std::string_view name() const override { return "dynamic-quantize-matmul"; }
  bool uses_input(std::size_t i) const override { return i == 0 || i == 4; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    c.workspace_bytes = scales_bytes(b_) + static_cast<std::size_t>(element_count(c.input_shape(0)));
    return nullptr;
  }
  void run(const KernelContext& c) const override {
    const std::int64_t rows = rows_of(c.input(0), b_);
    const std::int64_t count = c.input(0).size();
    const ops::DynamicScale q = dynamic_scale_of(c.in<float>(0), count);
    auto* bytes = static_cast<std::uint8_t*>(c.workspace) + scales_bytes(b_);
    quantize_u8(c.in<float>(0), bytes, count, q.scale, q.zero_point);
    b_.multiply(bytes, false, q.zero_point, rows, to_float(c, b_.n, q.scale, b_scale_, 4), c.output(0).mutable_data());
  }

 private:
  ByteMatrix b_;
  std::vector<float> b_scale_;
};

std::unique_ptr<Kernel> make_dynamic_matmul(LowerContext& c) {
  if (c.dtype(0) != DataType::float32) return c.refuse("not float32");
  if (!takes_left(c)) return nullptr;
  const std::int64_t n = c.constant(1) != nullptr && c.constant(1)->rank() == 2 ? c.constant(1)->shape()[1] : 0;
  auto b_scale = constant_scales(c, 2, n);
  if (!b_scale) return c.refuse("b_scale is not constant, or not one or one for each column");
  if (!is_bias(c, 4, n)) return c.refuse("the bias is not known to be one float32 for each column");
  auto b = byte_matrix(c, 1, 3);
  if (!b) return nullptr;
  return std::make_unique<DynamicMatMulKernel>(std::move(*b), std::move(*b_scale));
}

class QGemmKernel : public Kernel {
 public:
  QGemmKernel(ByteMatrix b, std::int32_t a_zero, std::vector<float> scales, std::vector<std::int32_t> bias)
      : b_(std::move(b)), a_zero_(a_zero), scales_(std::move(scales)), bias_(std::move(bias)) {
    epilogue_.output = QEpilogue::Output::f32;
    epilogue_.scale = scales_.data();
    epilogue_.scale_is_array = true;
    epilogue_.bias = bias_.empty() ? nullptr : bias_.data();
  }
  void set_result(DataType to, std::int32_t zero) { give_bytes(epilogue_, to, zero); }
  std::string_view name() const override { return "qgemm-8"; }
  bool uses_input(std::size_t i) const override { return i == 0; }
  void run(const KernelContext& c) const override { multiply(c.input(0), a_zero_, b_, epilogue_, c.output(0)); }

 private:
  ByteMatrix b_;
  std::int32_t a_zero_;
  std::vector<float> scales_;
  std::vector<std::int32_t> bias_;
  QEpilogue epilogue_;
};

std::unique_ptr<Kernel> make_qgemm(LowerContext& c) {
  const auto attr = ops::parse<ops::QGemmAttrs>(c);
  if (!is_byte(c.dtype(0))) return c.refuse("not 8 bits");
  if (!takes_left(c)) return nullptr;
  if (attr.trans_a) return c.refuse("A is transposed");
  const bool quantised = c.has_input(7) && c.has_input(8);
  const DataType to = c.output(0).elem;
  if (quantised ? !is_byte(to) || c.dtype(8) != to : to != DataType::float32)
    return c.refuse("the result is neither bytes of the expected type nor float32");
  const bool trans = attr.trans_b;
  const Tensor* w = c.constant(3);
  const std::int64_t n = w != nullptr && w->rank() == 2 ? w->shape()[trans ? 0 : 1] : 0;
  const auto a_scale = constant_scales(c, 1), b_scale = constant_scales(c, 4, n);
  const auto a_zero = constant_zeros(c, 2, c.dtype(0));
  const auto y_scale = quantised ? constant_scales(c, 7) : std::vector<float>{1.0F};
  const auto y_zero = quantised ? constant_zeros(c, 8, to) : std::vector<std::int32_t>{0};
  if (!a_scale || !a_zero || !b_scale || !y_scale || !y_zero)
    return c.refuse("scales or zero points are not constant, or too many");
  std::vector<std::int32_t> bias;
  if (c.has_input(6)) {
    auto values = constant_values<std::int32_t>(c, 6, DataType::int32, n);
    if (!values || static_cast<std::int64_t>(values->size()) != n)
      return c.refuse("C is not a constant vector, one for each column");
    bias = std::move(*values);
  }
  auto b = byte_matrix(c, 3, 5, trans);
  if (!b) return nullptr;
  // In the reference kernel's order of operations, so that both round alike.
  const float alpha = attr.alpha;
  std::vector<float> scales(static_cast<std::size_t>(n));
  for (std::size_t j = 0; j < scales.size(); ++j) {
    const float scale = alpha * (*a_scale)[0] * (*b_scale)[b_scale->size() == 1 ? 0 : j];
    scales[j] = quantised ? scale / (*y_scale)[0] : scale;
  }
  auto kernel = std::make_unique<QGemmKernel>(std::move(*b), (*a_zero)[0], std::move(scales), std::move(bias));
  if (quantised) kernel->set_result(to, (*y_zero)[0]);
  return kernel;
}

}  // namespace

void register_kernels_qlinear_matmul(KernelTable& t) {
  t.add("", "QLinearMatMul", "qlinear-matmul-8", 10, make_qlinear_matmul);
  t.add("com.microsoft", "QGemm", "qgemm-8", 10, make_qgemm);
  t.add("", "MatMulInteger", "matmul-integer-8", 10, make_matmul_integer);
  t.add("com.microsoft", "MatMulIntegerToFloat", "matmul-integer-to-f32", 10, make_matmul_to_float);
  t.add("com.microsoft", "DynamicQuantizeMatMul", "dynamic-quantize-matmul", 10, make_dynamic_matmul);
}

}  // namespace sdx::cpu
