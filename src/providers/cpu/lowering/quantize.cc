// QuantizeLinear and DequantizeLinear between float32 and 8 bits, per tensor and per axis; DynamicQuantizeLinear.

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/quant/quant.h"
#include "ops/quant/quant_layout.h"
#include "ops/quant/signatures.h"
#include "providers/cpu/byte_operands.h"

namespace sdx::cpu {
namespace {

using enum ops::QuantizeIn::Slot;

struct LayoutState : KernelState {
  ops::QuantLayout layout;
};

class LayoutKernel : public Kernel {
 public:
  explicit LayoutKernel(const ops::QuantizeAttrs& attr) : attr_(attr) {}

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<LayoutState>();
    const Shape zero = c.has_input(kZero) ? c.input_shape(kZero) : Shape();
    state->layout = ops::quant_layout(c.input_shape(kX), c.input_shape(kScale), c.has_input(kZero) ? &zero : nullptr, attr_.axis,
                                      attr_.block_size);
    return state;
  }

 private:
  ops::QuantizeAttrs attr_;
};

// Goes over all runs of elements: calls whole(first, count, scale, zero) for runs with one scale, and one(place, scale, zero) for
// each element of others.
template <class B, class Whole, class One>
void over_runs(const KernelContext& c, Whole&& whole, One&& one) {
  const ops::QuantLayout& layout = static_cast<const LayoutState*>(c.state)->layout;
  const auto* scale = c.in<float>(kScale);
  const B* zero = c.has_input(kZero) ? c.in<B>(kZero) : nullptr;
  // A per-tensor layout has few runs, and kernels split these themselves.
  parallel_for(layout.runs, std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, layout.run)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t r = begin; r < end; ++r) {
                   const ops::QuantLayout::Run run = layout.at(r);
                   const float* scales = scale + run.scale;
                   const B* zeros = zero != nullptr ? zero + run.scale : nullptr;
                   if (!layout.steps) {
                     whole(run.begin, run.count, *scales, zeros != nullptr ? *zeros : B{0});
                     continue;
                   }
                   for (std::int64_t i = 0; i < run.count; ++i) one(run.begin + i, scales[i], zeros != nullptr ? zeros[i] : B{0});
                 }
               });
}

template <class B>
class QuantizeKernel : public LayoutKernel {
 public:
  using LayoutKernel::LayoutKernel;
  std::string_view name() const override { return "quantize-8"; }
  void run(const KernelContext& c) const override {
    const auto* x = c.in<float>(kX);
    B* y = c.out<B>(0);
    const ops::QuantRange range{std::numeric_limits<B>::min(), std::numeric_limits<B>::max()};
    over_runs<B>(
        c, [&](auto first, auto count, float scale, B zero) { quantize(x + first, y + first, count, scale, zero); },
        [&](auto at, float scale, B zero) { y[at] = static_cast<B>(ops::requantize(x[at] / scale, zero, range)); });
  }

 private:
  static void quantize(const float* x, std::uint8_t* y, std::int64_t n, float scale, std::int32_t zero) {
    quantize_u8(x, y, n, scale, zero);
  }
  static void quantize(const float* x, std::int8_t* y, std::int64_t n, float scale, std::int32_t zero) {
    quantize_s8(x, y, n, scale, zero);
  }
};

std::unique_ptr<Kernel> make_quantize(LowerContext& c) {
  if (c.dtype(kX) != DataType::float32 || c.dtype(kScale) != DataType::float32) return c.refuse("not float32");
  const DataType to = c.output(0).elem;
  if (!is_byte(to)) return c.refuse("the target does not have 8 bits");
  if (c.has_input(kZero) && c.dtype(kZero) != to) return c.refuse("the zero point's type is not the target's");
  const auto attr = ops::parse<ops::QuantizeAttrs>(c);
  if (attr.precision != 0 && attr.precision != static_cast<std::int64_t>(DataType::float32))
    return c.refuse("divides in less than float32");
  if (to == DataType::int8) return std::make_unique<QuantizeKernel<std::int8_t>>(attr);
  return std::make_unique<QuantizeKernel<std::uint8_t>>(attr);
}

template <class B>
class DequantizeKernel : public LayoutKernel {
 public:
  using LayoutKernel::LayoutKernel;
  std::string_view name() const override { return "dequantize-8"; }
  void run(const KernelContext& c) const override {
    const B* x = c.in<B>(kX);
    auto* y = c.out<float>(0);
    over_runs<B>(
        c, [&](auto first, auto count, float scale, B zero) { dequantize(x + first, y + first, count, scale, zero); },
        [&](auto at, float scale, B zero) { y[at] = static_cast<float>(x[at] - zero) * scale; });
  }

 private:
  static void dequantize(const std::uint8_t* x, float* y, std::int64_t n, float scale, std::int32_t zero) {
    dequantize_u8(x, y, n, scale, zero);
  }
  static void dequantize(const std::int8_t* x, float* y, std::int64_t n, float scale, std::int32_t zero) {
    dequantize_s8(x, y, n, scale, zero);
  }
};

std::unique_ptr<Kernel> make_dequantize(LowerContext& c) {
  if (!is_byte(c.dtype(kX))) return c.refuse("the input does not have 8 bits");
  if (c.dtype(kScale) != DataType::float32 || c.output(0).elem != DataType::float32) return c.refuse("not to float32");
  if (c.has_input(kZero) && c.dtype(kZero) != c.dtype(kX)) return c.refuse("the zero point's type is not the input's");
  const auto attr = ops::parse<ops::QuantizeAttrs>(c);
  if (c.dtype(kX) == DataType::int8) return std::make_unique<DequantizeKernel<std::int8_t>>(attr);
  return std::make_unique<DequantizeKernel<std::uint8_t>>(attr);
}

class DynamicQuantizeKernel : public Kernel {
 public:
  std::string_view name() const override { return "dynamic-quantize-8"; }
  void run(const KernelContext& c) const override {
    const Tensor& x = c.input(kX);
    const ops::DynamicScale q = dynamic_scale_of(c.in<float>(kX), x.size());
    if (c.has_output(0)) quantize_u8(c.in<float>(kX), c.out<std::uint8_t>(0), x.size(), q.scale, q.zero_point);
    if (c.has_output(1)) *c.out<float>(1) = q.scale;
    if (c.has_output(2)) *c.out<std::uint8_t>(2) = static_cast<std::uint8_t>(q.zero_point);
  }
};

std::unique_ptr<Kernel> make_dynamic_quantize(LowerContext& c) {
  if (c.dtype(kX) != DataType::float32) return c.refuse("not float32");
  return std::make_unique<DynamicQuantizeKernel>();
}

}  // namespace

void register_kernels_quantize(KernelTable& t) {
  for (const char* domain : {"", "com.microsoft"}) {
    t.add(domain, "QuantizeLinear", "quantize-8", 10, make_quantize);
    t.add(domain, "DequantizeLinear", "dequantize-8", 10, make_dequantize);
  }
  t.add("", "DynamicQuantizeLinear", "dynamic-quantize-8", 10, make_dynamic_quantize);
}

}  // namespace sdx::cpu
