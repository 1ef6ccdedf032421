// MaxPool, AveragePool, GlobalAveragePool and GlobalMaxPool in float32.

#include "kernels/cpu/image/pool.h"

#include <algorithm>
#include <limits>

#include "kernels/cpu/image/max_pool_places.h"
#include "kernels/cpu/rows/reduce.h"
#include "ops/conv/conv_geometry.h"
#include "ops/conv/signatures.h"
#include "ops/tensor/axes.h"
#include "providers/cpu/kernel_table.h"
#include "providers/cpu/pool_state.h"

namespace sdx::cpu {
namespace {

class PoolKernel : public Kernel {
 public:
  PoolKernel(const LowerContext& c, bool average)
      : attrs_(c.attrs()), average_(average), count_pad_(ops::parse<ops::PoolAttrs>(c).count_include_pad) {}
  std::string_view name() const override { return average_ ? "average-pool-f32" : "max-pool-f32"; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    const Shape x = c.input_shape(0);
    if (x.size() < 3 || x.size() > 5) fail(ErrorCode::runtime_failure, "X must have rank 3 to 5, received {}", to_string(x));
    return pool_state(attrs_, x);
  }

  void run(const KernelContext& c) const override {
    const auto& s = *static_cast<const PoolState*>(c.state);
    if (c.output(0).size() == 0) return;
    if (c.has_output(1)) {
      max_pool_places_f32(s.shape, c.in<float>(0), c.out<float>(0), c.out<std::int64_t>(1));
    } else if (average_) {
      average_pool_f32(s.shape, s.pad_end, count_pad_, c.in<float>(0), c.out<float>(0));
    } else {
      max_pool_f32(s.shape, c.in<float>(0), c.out<float>(0));
    }
  }

 private:
  Attributes attrs_;
  bool average_;
  bool count_pad_ = false;
};

// Tells whether windows or strides are too wide for the buffers through which rows of windows go.
bool is_huge(const ops::WindowAttrs& w) {
  constexpr std::int64_t kMost = 65536;
  for (std::size_t i = 0; i < w.kernel.size(); ++i) {
    if ((w.kernel[i] - 1) * w.dilations[i] >= kMost || w.strides[i] > kMost) return true;
  }
  return false;
}

template <bool Average>
std::unique_ptr<Kernel> make_pool(LowerContext& c) {
  if (c.dtype(0) != DataType::float32) return c.refuse("not float32");
  if (c.has_output(1) && ops::parse<ops::PoolAttrs>(c).storage_order) return c.refuse("indices that count down the columns");
  const SymShape* x = c.shape(0);
  if (x == nullptr || x->size() < 3 || x->size() > 5) return c.refuse("not known to have one to three spatial axes");
  const ops::WindowAttrs w = ops::read_window_attrs(c.attrs(), x->size() - 2);
  if (Average && ops::may_average_nothing(w)) return c.refuse("windows may hold nothing but padding");
  if (is_huge(w)) return c.refuse("windows or strides above 65536");
  return std::make_unique<PoolKernel>(c, Average);
}

class GlobalPoolKernel : public Kernel {
 public:
  explicit GlobalPoolKernel(Reduce op) : op_(op) {}
  std::string_view name() const override { return "global-pool-f32"; }
  void run(const KernelContext& c) const override {
    const Shape& x = c.input(0).shape();
    const std::int64_t planes = c.output(0).size();
    const std::int64_t inner = ops::product(x, 2, x.size());
    auto* y = c.out<float>(0);
    if (planes == 0) return;
    if (inner > 0) return reduce_f32(op_, c.in<float>(0), y, planes, inner, 1);
    std::fill(y, y + planes,
              op_ == Reduce::mean ? std::numeric_limits<float>::quiet_NaN() : -std::numeric_limits<float>::infinity());
  }

 private:
  Reduce op_;
};

template <Reduce Op>
std::unique_ptr<Kernel> make_global(LowerContext& c) {
  if (c.dtype(0) != DataType::float32) return c.refuse("not float32");
  if (c.shape(0) == nullptr || c.shape(0)->size() < 2) return c.refuse("rank unknown or below 2");
  return std::make_unique<GlobalPoolKernel>(Op);
}

}  // namespace

void register_kernels_pool(KernelTable& t) {
  t.add("", "MaxPool", "max-pool-f32", 10, make_pool<false>);
  t.add("", "AveragePool", "average-pool-f32", 10, make_pool<true>);
  t.add("", "GlobalAveragePool", "global-pool-f32", 10, make_global<Reduce::mean>);
  t.add("", "GlobalMaxPool", "global-pool-f32", 10, make_global<Reduce::max>);
}

}  // namespace sdx::cpu
