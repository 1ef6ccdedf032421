// com.microsoft QLinearAdd of equal shapes, QLinearMul of these or by channels, NhwcMaxPool, QLinearAveragePool and
// QLinearGlobalAveragePool over bytes with the channels last, QLinearSigmoid, QLinearLeakyRelu and sdx ByteTable by a table of
// 256 results, QLinearConcat by one for each part.

#include <cmath>

#include "kernels/cpu/quant/quant_bytes.h"
#include "ops/conv/conv_geometry.h"
#include "ops/math/signatures.h"
#include "ops/quant/signatures.h"
#include "ops/tensor/axes.h"
#include "providers/cpu/byte_operands.h"
#include "providers/cpu/conv_shape.h"

namespace sdx::cpu {
namespace {

struct Quantised {
  float scale = 1.0F;
  std::int32_t zero = 0;
};

// Returns the constant scale and zero point of a tensor; nothing if they are not single constants.
std::optional<Quantised> quantised(const LowerContext& c, std::size_t scale, DataType type) {
  const auto s = constant_scales(c, scale);
  const auto z = constant_zeros(c, scale + 1, type);
  if (!s || !z || s->size() != 1 || z->size() != 1) return std::nullopt;
  return Quantised{(*s)[0], (*z)[0]};
}

[[noreturn]] void misfit(const ResolveContext& c) {
  fail(ErrorCode::runtime_failure, "the graph foresees operands of shapes that fit without broadcasting, received {} and {}",
       to_string(c.input_shape(0)), to_string(c.input_shape(3)));
}

class QAddKernel : public Kernel {
 public:
  explicit QAddKernel(const QAdd& add) : add_(add) {}
  std::string_view name() const override { return "qlinear-add-8"; }
  bool uses_input(std::size_t i) const override { return i == 0 || i == 3; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    if (c.input_shape(0) != c.input_shape(3)) misfit(c);
    return nullptr;
  }
  void run(const KernelContext& c) const override {
    qadd(add_, c.input(0).data(), c.input(3).data(), c.output(0).mutable_data(), c.output(0).size());
  }

 private:
  QAdd add_;
};

std::unique_ptr<Kernel> make_add(LowerContext& c) {
  const DataType type = c.dtype(0);
  if (!is_byte(type) || c.dtype(3) != type) return c.refuse("not 8 bits");
  const SymShape* a = c.shape(0);
  const SymShape* b = c.shape(3);
  if (a == nullptr || b == nullptr || a->size() != b->size() || !std::equal(a->begin(), a->end(), b->begin())) {
    return c.refuse("the operands are not known to have the same shape");
  }
  const auto qa = quantised(c, 1, type), qb = quantised(c, 4, type), qy = quantised(c, 6, type);
  if (!qa || !qb || !qy) return c.refuse("scales or zero points are not single constants");
  QAdd add;
  add.is_signed = type == DataType::int8;
  add.a_zero = qa->zero, add.b_zero = qb->zero, add.y_zero = qy->zero;
  add.a_scale = qa->scale / qy->scale, add.b_scale = qb->scale / qy->scale;
  return std::make_unique<QAddKernel>(add);
}

// Multiplies tensors of equal shapes, or images with channels last by one number for each channel.
class QMulKernel : public Kernel {
 public:
  explicit QMulKernel(const QMul& mul) : mul_(mul) {}
  std::string_view name() const override { return "qlinear-mul-8"; }
  bool uses_input(std::size_t i) const override { return i == 0 || i == 3; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    const Shape a = c.input_shape(0), b = c.input_shape(3);
    const bool channels = a.size() == 4 && b == Shape{a[0], 1, 1, a[3]};
    if (a != b && !channels) misfit(c);
    return nullptr;
  }
  void run(const KernelContext& c) const override {
    const Tensor &a = c.input(0), &b = c.input(3);
    void* y = c.output(0).mutable_data();
    if (a.shape() == b.shape()) return qmul(mul_, a.data(), b.data(), y, a.size());
    const std::int64_t batch = a.shape()[0], channels = a.shape().back();
    qmul_channels(mul_, a.data(), b.data(), y, batch, a.shape()[1] * a.shape()[2], channels);
  }

 private:
  QMul mul_;
};

std::unique_ptr<Kernel> make_mul(LowerContext& c) {
  const DataType type = c.dtype(0);
  if (!is_byte(type) || c.dtype(3) != type) return c.refuse("not 8 bits");
  const SymShape* a = c.shape(0);
  const SymShape* b = c.shape(3);
  if (a == nullptr || b == nullptr || a->size() != b->size()) return c.refuse("the operands are not known to have one rank");
  const bool channels = a->size() == 4 && (*a)[0] == (*b)[0] && (*b)[1] == Dim(1) && (*b)[2] == Dim(1) && (*a)[3] == (*b)[3];
  if (!channels && !std::equal(a->begin(), a->end(), b->begin())) {
    return c.refuse("neither equal shapes nor a factor for each channel of images with the channels last");
  }
  const auto qa = quantised(c, 1, type), qb = quantised(c, 4, type), qy = quantised(c, 6, type);
  if (!qa || !qb || !qy) return c.refuse("scales or zero points are not single constants");
  QMul mul;
  mul.is_signed = type == DataType::int8;
  mul.a_zero = qa->zero, mul.b_zero = qb->zero, mul.y_zero = qy->zero;
  mul.scale = qa->scale * qb->scale / qy->scale;
  return std::make_unique<QMulKernel>(mul);
}

struct PoolState : KernelState {
  ConvShape shape;
};

// Resolves a pool over images with channels last.
std::unique_ptr<KernelState> pool_state(const Attributes& attrs, Shape x) {
  auto state = std::make_unique<PoolState>();
  if (x.size() < 3 || x.size() > 5) fail(ErrorCode::runtime_failure, "X must have rank 3 to 5, received {}", to_string(x));
  std::rotate(x.begin() + 1, x.end() - 1, x.end());
  const std::vector<ops::WindowAxis> axes = ops::pool_axes(attrs, x);
  state->shape.batch = x[0];
  state->shape.in_channels = state->shape.out_channels = x[1];
  set_axes(state->shape, axes);
  return state;
}

class NhwcMaxPoolKernel : public Kernel {
 public:
  explicit NhwcMaxPoolKernel(Attributes attrs) : attrs_(std::move(attrs)) {}
  std::string_view name() const override { return "max-pool-nhwc-8"; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override { return pool_state(attrs_, c.input_shape(0)); }
  void run(const KernelContext& c) const override {
    if (c.output(0).size() == 0) return;
    max_pool_bytes(static_cast<const PoolState*>(c.state)->shape, c.input(0).data(), c.input(0).dtype() == DataType::int8,
                   c.output(0).mutable_data());
  }

 private:
  Attributes attrs_;
};

std::unique_ptr<Kernel> make_max_pool(LowerContext& c) {
  if (!is_byte(c.dtype(0))) return c.refuse("not 8 bits");
  return std::make_unique<NhwcMaxPoolKernel>(c.attrs());
}

class AveragePoolKernel : public Kernel {
 public:
  AveragePoolKernel(Attributes attrs, const QAverage& average) : attrs_(std::move(attrs)), average_(average) {}
  std::string_view name() const override { return "average-pool-nhwc-8"; }
  bool uses_input(std::size_t i) const override { return i == 0; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override { return pool_state(attrs_, c.input_shape(0)); }
  void run(const KernelContext& c) const override {
    if (c.output(0).size() == 0) return;
    average_pool_bytes(average_, static_cast<const PoolState*>(c.state)->shape, c.input(0).data(), c.output(0).mutable_data());
  }

 private:
  Attributes attrs_;
  QAverage average_;
};

std::unique_ptr<Kernel> make_average_pool(LowerContext& c) {
  const DataType type = c.dtype(0);
  if (!is_byte(type)) return c.refuse("not 8 bits");
  const auto attrs = ops::parse<ops::QLinearPoolAttrs>(c);
  if (!attrs.channels_last) return c.refuse("channels first");
  const auto from = quantised(c, 1, type), to = quantised(c, 3, type);
  if (!from || !to) return c.refuse("scales or zero points are not single constants");
  QAverage average;
  average.is_signed = type == DataType::int8;
  average.all_taps = attrs.pool.count_include_pad;
  average.x_zero = from->zero, average.y_zero = to->zero;
  average.x_scale = from->scale, average.y_scale = to->scale;
  return std::make_unique<AveragePoolKernel>(c.attrs(), average);
}

class GlobalAverageKernel : public Kernel {
 public:
  GlobalAverageKernel(Quantised from, Quantised to) : from_(from), to_(to) {}
  std::string_view name() const override { return "global-average-nhwc-8"; }
  bool uses_input(std::size_t i) const override { return i == 0; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    const Shape x = c.input_shape(0);
    if (x.size() < 2) fail(ErrorCode::runtime_failure, "X must have rank 2 or more, received {}", to_string(x));
    c.workspace_bytes = static_cast<std::size_t>(x.front() * x.back()) * sizeof(std::int32_t);
    return nullptr;
  }
  void run(const KernelContext& c) const override {
    const Tensor& x = c.input(0);
    const std::int64_t count = c.output(0).size();
    if (count == 0) return;
    const bool is_signed = x.dtype() == DataType::int8;
    const std::int64_t channels = x.shape().back();
    const std::int64_t pixels = x.size() / count;
    auto* sums = static_cast<std::int32_t*>(c.workspace);
    sum_pixels(x.data(), is_signed, x.shape()[0], pixels, channels, sums);
    // In the reference kernel's order of operations; windows of nothing give 0.
    const float scale = from_.scale / (static_cast<float>(pixels) * to_.scale);
    const ops::QuantRange range = ops::quant_range(x.dtype());
    auto* y = static_cast<std::uint8_t*>(c.output(0).mutable_data());
    for (std::int64_t i = 0; i < count; ++i) {
      const auto centred = static_cast<float>(sums[i] - pixels * from_.zero);
      y[i] = static_cast<std::uint8_t>(ops::requantize(pixels == 0 ? 0.0F : centred * scale, to_.zero, range));
    }
  }

 private:
  Quantised from_, to_;
};

std::unique_ptr<Kernel> make_global_average(LowerContext& c) {
  const DataType type = c.dtype(0);
  if (!is_byte(type)) return c.refuse("not 8 bits");
  if (!ops::parse<ops::QLinearPoolAttrs>(c).channels_last) return c.refuse("channels first");
  const auto from = quantised(c, 1, type), to = quantised(c, 3, type);
  if (!from || !to) return c.refuse("scales or zero points are not single constants");
  return std::make_unique<GlobalAverageKernel>(*from, *to);
}

class TableKernel : public Kernel {
 public:
  explicit TableKernel(std::vector<std::uint8_t> table) : table_(std::move(table)) {}
  std::string_view name() const override { return "table-8"; }
  bool uses_input(std::size_t i) const override { return i == 0; }
  int in_place() const override { return 0; }
  void run(const KernelContext& c) const override {
    map_bytes(table_.data(), c.input(0).data(), c.output(0).mutable_data(), c.output(0).size());
  }

 private:
  std::vector<std::uint8_t> table_;
};

template <class F>
std::unique_ptr<Kernel> make_table(LowerContext& c, F&& fn) {
  const DataType type = c.dtype(0);
  if (!is_byte(type)) return c.refuse("not 8 bits");
  const auto from = quantised(c, 1, type), to = quantised(c, 3, type);
  if (!from || !to) return c.refuse("scales or zero points are not single constants");
  return std::make_unique<TableKernel>(ops::quant_table(type, from->scale, from->zero, to->scale, to->zero, fn));
}

std::unique_ptr<Kernel> make_sigmoid(LowerContext& c) {
  return make_table(c, [](float v) { return 1.0F / (1.0F + std::exp(-v)); });
}

std::unique_ptr<Kernel> make_leaky_relu(LowerContext& c) {
  const float alpha = ops::parse<ops::ActivationAttrs>(c).alpha;
  return make_table(c, [alpha](float v) { return v >= 0.0F ? v : v * alpha; });
}

std::unique_ptr<Kernel> make_byte_table(LowerContext& c) {
  const Tensor* table = c.constant(1);
  if (table == nullptr || table->size() != 256) return c.refuse("the table is not a constant of 256 bytes");
  const auto* byte = static_cast<const std::uint8_t*>(table->data());
  return std::make_unique<TableKernel>(std::vector<std::uint8_t>(byte, byte + 256));
}

struct ConcatState : KernelState {
  std::int64_t outer = 1, row = 0;
  std::vector<std::int64_t> own;  // bytes of each part that stand together
};

class QConcatKernel : public Kernel {
 public:
  // `tables` has one table for each part; an empty one copies.
  QConcatKernel(std::vector<std::vector<std::uint8_t>> tables, std::int64_t axis) : tables_(std::move(tables)), axis_(axis) {}
  std::string_view name() const override { return "concat-8"; }
  bool uses_input(std::size_t i) const override { return i >= 2 && (i - 2) % 3 == 0; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto s = std::make_unique<ConcatState>();
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      const Shape x = c.input_shape(2 + 3 * i);
      const auto axis = static_cast<std::size_t>(ops::normalize_axis(axis_, x.size()));
      if (i == 0) s->outer = ops::product(x, 0, axis);
      s->own.push_back(ops::product(x, axis, x.size()));
      s->row += s->own.back();
    }
    return s;
  }

  void run(const KernelContext& c) const override {
    const auto& s = *static_cast<const ConcatState*>(c.state);
    auto* out = static_cast<std::uint8_t*>(c.output(0).mutable_data());
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      map_byte_rows(tables_[i].empty() ? nullptr : tables_[i].data(), c.input(2 + 3 * i).data(), out, s.row, s.outer, s.own[i]);
      out += s.own[i];
    }
  }

 private:
  std::vector<std::vector<std::uint8_t>> tables_;
  std::int64_t axis_;
};

std::unique_ptr<Kernel> make_concat(LowerContext& c) {
  const DataType type = c.output(0).elem;
  if (!is_byte(type)) return c.refuse("not 8 bits");
  const auto to = quantised(c, 0, type);
  std::vector<std::vector<std::uint8_t>> tables;
  for (std::size_t i = 2; i + 2 < c.node().inputs.size(); i += 3) {
    if (c.dtype(i) != type) return c.refuse("parts of another type than the result");
    const auto from = quantised(c, i + 1, type);
    if (!from || !to) return c.refuse("scales or zero points are not single constants");
    const bool copies = from->scale == to->scale && from->zero == to->zero;
    tables.push_back(copies ? std::vector<std::uint8_t>()
                            : ops::quant_table(type, from->scale, from->zero, to->scale, to->zero, [](float v) { return v; }));
  }
  return std::make_unique<QConcatKernel>(std::move(tables), ops::parse<ops::QLinearConcatAttrs>(c).axis);
}

}  // namespace

void register_kernels_qlinear_bytes(KernelTable& t) {
  t.add("com.microsoft", "QLinearAdd", "qlinear-add-8", 10, make_add);
  t.add("com.microsoft", "QLinearMul", "qlinear-mul-8", 10, make_mul);
  t.add("com.microsoft", "NhwcMaxPool", "max-pool-nhwc-8", 10, make_max_pool);
  t.add("com.microsoft", "QLinearAveragePool", "average-pool-nhwc-8", 10, make_average_pool);
  t.add("com.microsoft", "QLinearGlobalAveragePool", "global-average-nhwc-8", 10, make_global_average);
  t.add("com.microsoft", "QLinearSigmoid", "table-8", 10, make_sigmoid);
  t.add("com.microsoft", "QLinearLeakyRelu", "table-8", 10, make_leaky_relu);
  t.add("sdx", "ByteTable", "table-8", 10, make_byte_table);
  t.add("com.microsoft", "QLinearConcat", "concat-8", 10, make_concat);
}

}  // namespace sdx::cpu
