// Reductions in float32 over neighbouring axes.

#include "kernels/cpu/reduce.h"

#include <algorithm>

#include "ops/util/axes.h"
#include "providers/cpu/kernel_table.h"
#include "tensor/element.h"

namespace sdx::cpu {
namespace {

class ReduceKernel : public Kernel {
 public:
  ReduceKernel(Reduce op, std::size_t begin, std::size_t end) : op_(op), begin_(begin), end_(end) {}
  std::string_view name() const override { return "reduce-f32"; }
  void run(const KernelContext& c) const override {
    const Shape& x = c.input(0).shape();
    if (c.input(0).size() == 0 || x.size() < end_) {
      if (c.output(0).size() == 0) return;
      fail(ErrorCode::runtime_failure, "cannot reduce shape {} along axes {} to {}: there are no elements", to_string(x), begin_,
           end_ - 1);
    }
    reduce_f32(op_, c.in<float>(0), c.out<float>(0), ops::product(x, 0, begin_), ops::product(x, begin_, end_),
               ops::product(x, end_, x.size()));
  }

 private:
  Reduce op_;
  std::size_t begin_, end_;  // the axes to reduce
};

bool is_one(const Dim& d) { return d.is_const() && d.value() == 1; }

template <Reduce Op>
std::unique_ptr<Kernel> make_reduce(LowerContext& c) {
  if (c.dtype(0) != DataType::float32) return c.refuse("not float32");
  const SymShape* x = c.shape(0);
  if (x == nullptr || x->empty()) return c.refuse("rank unknown or 0");
  const bool as_input = c.node().version >= (c.node().op_type == "ReduceSum" ? 13 : 18);
  std::vector<std::int64_t> axes;
  if (!as_input) {
    axes = c.attrs().get_ints("axes");
  } else if (c.has_input(1)) {
    const Tensor* t = c.constant(1);
    if (t == nullptr) return c.refuse("the axes are not constant");
    for (std::int64_t i = 0; i < t->size(); ++i) axes.push_back(element_as_int(*t, i));
  }
  if (axes.empty() && c.attrs().get_int("noop_with_empty_axes", 0) != 0) return c.refuse("reduces nothing");
  std::vector<bool> flags(x->size(), axes.empty());
  for (const std::int64_t axis : axes) flags[static_cast<std::size_t>(ops::normalize_axis(axis, x->size()))] = true;
  for (std::size_t i = 0; i < x->size(); ++i) {
    // What a reduction over nothing gives is the reference's business.
    const Dim& d = (*x)[i];
    if (flags[i] && (!d.is_const() || d.value() == 0)) return c.refuse("an extent to reduce is not known, or 0");
  }
  std::size_t begin = 0, end = x->size();
  while (begin < end && (!flags[begin] || is_one((*x)[begin]))) ++begin;
  while (end > begin && (!flags[end - 1] || is_one((*x)[end - 1]))) --end;
  for (std::size_t i = begin; i < end; ++i) {
    if (!flags[i] && !is_one((*x)[i])) return c.refuse("the axes are not neighbours");
  }
  return std::make_unique<ReduceKernel>(Op, begin, end);
}

}  // namespace

void register_kernels_reduce(KernelTable& t) {
  t.add("", "ReduceMean", "reduce-f32", 10, make_reduce<Reduce::mean>);
  t.add("", "ReduceSum", "reduce-f32", 10, make_reduce<Reduce::sum>);
  t.add("", "ReduceMax", "reduce-f32", 10, make_reduce<Reduce::max>);
  t.add("", "ReduceMin", "reduce-f32", 10, make_reduce<Reduce::min>);
  t.add("", "ReduceSumSquare", "reduce-f32", 10, make_reduce<Reduce::sum_square>);
  t.add("", "ReduceL1", "reduce-f32", 10, make_reduce<Reduce::sum_abs>);
}

}  // namespace sdx::cpu
