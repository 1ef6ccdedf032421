// Comparisons, logic, Where, IsNaN, IsInf and the arithmetic of integers and of float64.

#include "kernels/cpu/elementwise/typed.h"

#include <optional>

#include "ops/math/signatures.h"
#include "providers/cpu/broadcast.h"
#include "providers/cpu/kernel_table.h"

namespace sdx::cpu {
namespace {

bool known_rank(const LowerContext& c, std::size_t i) {
  const SymShape* s = c.shape(i);
  return s != nullptr && s->size() <= static_cast<std::size_t>(kMaxBroadcastRank);
}

template <int N>
struct RowsState : KernelState {
  RowPlan<N> plan;
};

class PairKernel : public Kernel {
 public:
  // `swapped`: the operator's first input is the function's second operand.
  PairKernel(Pair op, Elem elem, bool swapped) : op_(op), elem_(elem), first_(swapped ? 1 : 0) {}
  std::string_view name() const override { return "pair-typed"; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<RowsState<2>>();
    state->plan = plan_rows<2>({c.input_shape(first_), c.input_shape(1 - first_)}, c.output_shape(0));
    return state;
  }
  void run(const KernelContext& c) const override {
    const auto& plan = static_cast<const RowsState<2>*>(c.state)->plan;
    if (plan.inner == 0) return;
    pair_broadcast(op_, elem_, plan, c.input(first_).data(), c.input(1 - first_).data(), c.output(0).mutable_data());
  }

 private:
  Pair op_;
  Elem elem_;
  std::size_t first_;
};

template <Pair kOp, bool kSwapped = false>
std::unique_ptr<Kernel> make_pair(LowerContext& c) {
  if (c.node().inputs.size() != 2 || !c.has_input(0) || !c.has_input(1)) return c.refuse("not two inputs");
  const std::optional<Elem> elem = elem_of(c.dtype(0));
  if (!elem || c.dtype(0) != c.dtype(1) || pair_row(kOp, *elem) == nullptr) return c.refuse("not of a type that it knows");
  if (c.node().version < 7) return c.refuse("broadcasting rules of opsets before 7");
  if (!known_rank(c, 0) || !known_rank(c, 1)) return c.refuse("rank unknown or above 8");
  return std::make_unique<PairKernel>(kOp, *elem, kSwapped);
}

class MapKernel : public Kernel {
 public:
  MapKernel(Map op, Elem elem, bool same_width) : op_(op), elem_(elem), same_width_(same_width) {}
  std::string_view name() const override { return "map-typed"; }
  int in_place() const override { return same_width_ ? 0 : -1; }
  void run(const KernelContext& c) const override {
    const std::int64_t n = c.output(0).size();
    if (n != 0) map_elements(op_, elem_, c.input(0).data(), c.output(0).mutable_data(), n);
  }

 private:
  Map op_;
  Elem elem_;
  bool same_width_;
};

std::unique_ptr<Kernel> make_map_of(LowerContext& c, Map op) {
  const std::optional<Elem> elem = elem_of(c.dtype(0));
  if (!elem || map_row(op, *elem) == nullptr) return c.refuse("not of a type that it knows");
  return std::make_unique<MapKernel>(op, *elem, *elem != Elem::f32);
}

template <Map kOp>
std::unique_ptr<Kernel> make_map(LowerContext& c) {
  return make_map_of(c, kOp);
}

std::unique_ptr<Kernel> make_is_inf(LowerContext& c) {
  const auto attr = ops::parse<ops::IsInfAttrs>(c);
  const bool negative = attr.detect_negative;
  const bool positive = attr.detect_positive;
  if (!negative && !positive) return c.refuse("detects no infinity");
  return make_map_of(c, negative && positive ? Map::is_inf : (positive ? Map::is_positive_inf : Map::is_negative_inf));
}

class WhereKernel : public Kernel {
 public:
  WhereKernel(int bytes, int in_place) : bytes_(bytes), in_place_(in_place) {}
  std::string_view name() const override { return "where"; }
  int in_place() const override { return in_place_; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<RowsState<3>>();
    state->plan = plan_rows<3>({c.input_shape(0), c.input_shape(1), c.input_shape(2)}, c.output_shape(0));
    return state;
  }
  void run(const KernelContext& c) const override {
    const auto& plan = static_cast<const RowsState<3>*>(c.state)->plan;
    if (plan.inner == 0) return;
    select_broadcast(bytes_, plan, static_cast<const std::uint8_t*>(c.input(0).data()), c.input(1).data(), c.input(2).data(),
                     c.output(0).mutable_data());
  }

 private:
  int bytes_;
  int in_place_;
};

std::unique_ptr<Kernel> make_where(LowerContext& c) {
  const DataType type = c.dtype(1);
  if (c.dtype(0) != DataType::boolean || type != c.dtype(2) || type == DataType::string)
    return c.refuse("not numbers of one type");
  const int bits = bit_width(type);
  if (bits != 8 && bits != 16 && bits != 32 && bits != 64) return c.refuse("not of 1, 2, 4 or 8 bytes");
  for (const std::size_t i : {0, 1, 2}) {
    if (!known_rank(c, i)) return c.refuse("rank unknown or above 8");
  }
  // The larger operand may be overwritten: the planner checks that its size is the output's.
  const bool second = c.constant(1) != nullptr || c.shape(2)->size() > c.shape(1)->size();
  return std::make_unique<WhereKernel>(bits / 8, second ? 2 : 1);
}

}  // namespace

void register_kernels_typed(KernelTable& t) {
  const auto pair = [&](const char* op, MakeKernel make) { t.add("", op, "pair-typed", 20, make); };
  pair("Equal", make_pair<Pair::equal>);
  pair("Less", make_pair<Pair::less>);
  pair("LessOrEqual", make_pair<Pair::less_equal>);
  pair("Greater", make_pair<Pair::less, true>);
  pair("GreaterOrEqual", make_pair<Pair::less_equal, true>);
  pair("And", make_pair<Pair::all>);
  pair("Or", make_pair<Pair::any>);
  pair("Xor", make_pair<Pair::either>);
  pair("Add", make_pair<Pair::add>);
  pair("Sub", make_pair<Pair::sub>);
  pair("Mul", make_pair<Pair::mul>);
  pair("Div", make_pair<Pair::div>);
  pair("Min", make_pair<Pair::min>);
  pair("Max", make_pair<Pair::max>);
  const auto map = [&](const char* op, MakeKernel make) { t.add("", op, "map-typed", 20, make); };
  map("Not", make_map<Map::logical_not>);
  map("IsNaN", make_map<Map::is_nan>);
  map("IsInf", make_is_inf);
  map("Neg", make_map<Map::negate>);
  map("Sqrt", make_map<Map::square_root>);
  map("Abs", make_map<Map::absolute>);
  t.add("", "Where", "where", 20, make_where);
}

}  // namespace sdx::cpu
