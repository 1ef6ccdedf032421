// Gradient of Loop: a Loop from the last iteration to the first. Each computes forward again from the values that the iteration
// started with, which the forward Loop records, and only those that are needed: whole tensors as a scan output, those that may
// change their shape in a sequence.

#include <algorithm>
#include <string>

#include "base/error.h"
#include "graph/edit.h"
#include "ops/control/subgraphs.h"
#include "ops/gradients/flow/body.h"

namespace sdx::ops {
namespace {

using flow::Body;

// Records the value of a state at the start of every iteration.
struct Record {
  ValueId outer = kNoValue;
  bool sequence = false;
};

// The body keeps the shape, as far as names and numbers of extents tell.
bool keeps_shape(const Type& t) {
  return t.is_tensor() && t.shape && std::none_of(t.shape->begin(), t.shape->end(), [](const Dim& d) { return d.is_unknown(); });
}

class LoopGradient {
 public:
  explicit LoopGradient(GradientContext& c)
      : c_(c),
        states_(c.num_inputs() > 2 ? c.num_inputs() - 2 : 0),
        outputs_(c.node().outputs.size()),
        moving_(states_, false),
        active_(states_, false),
        body_(c, 0) {}

  void run() {
    find_moving();
    find_active();
    Graph& b = body_.graph();
    iteration_ = b.add_input("iteration", Type::tensor(DataType::int64, SymShape{}));
    go_on_ = b.add_input("go_on", Type::tensor(DataType::boolean, SymShape{}));
    go_back();
    if (body_.graph().outputs().size() == 1) return;  // nothing depends on what is asked for
    body_.prune();
    provide();
    emit();
  }

 private:
  // The states that have derivatives, which others may bring into them.
  void find_moving() {
    for (std::size_t k = 0; k < states_; ++k) moving_[k] = c_.wants(2 + k);
    for (bool changed = true; changed;) {
      changed = false;
      std::vector<ValueId> xs;
      for (std::size_t k = 0; k < states_; ++k) {
        if (moving_[k]) xs.push_back(body_.formal(2 + k));
      }
      for (std::size_t j = 0; j < body_.captures(); ++j) {
        if (body_.wanted(j)) xs.push_back(body_.captured(j));
      }
      const std::vector<bool> depends = depend_on(body_.graph(), xs);
      for (std::size_t k = 0; k < states_; ++k) {
        if (moving_[k] || !depends[body_.output(1 + k)]) continue;
        moving_[k] = changed = true;
      }
    }
  }

  // Finds those of the states on which something with a gradient depends.
  void find_active() {
    for (std::size_t k = 0; k < states_; ++k) active_[k] = moving_[k] && c_.dy(k);
    for (bool changed = true; changed;) {
      changed = false;
      std::vector<ValueId> ends;
      for (std::size_t i = 0; i < outputs_; ++i) {
        if (i < states_ ? active_[i] : static_cast<bool>(c_.dy(i))) ends.push_back(body_.output(1 + i));
      }
      const std::vector<bool> needed = needed_for(body_.graph(), ends);
      for (std::size_t k = 0; k < states_; ++k) {
        if (active_[k] || !moving_[k] || !needed[body_.formal(2 + k)]) continue;
        active_[k] = changed = true;
      }
    }
    for (std::size_t k = 0; k < states_; ++k) {
      if (active_[k]) c_.out(k);  // an output that was left out is added before others are
    }
  }

  void go_back() {
    Graph& b = body_.graph();
    std::vector<Seed> seeds;
    std::vector<ValueId> sources, arrived;
    for (std::size_t k = 0; k < states_; ++k) {
      if (!active_[k]) continue;
      arrived.push_back(b.add_input("gradient", body_.type(body_.output(1 + k))));
      seeds.push_back({body_.output(1 + k), arrived.back()});
      sources.push_back(body_.formal(2 + k));
    }
    for (std::size_t i = states_; i < outputs_; ++i) {
      if (!c_.dy(i)) continue;
      slices_.emplace_back(b.add_value("gradient", body_.type(body_.output(1 + i))), c_.dy(i).id);
      seeds.push_back({body_.output(1 + i), slices_.back().first});
    }
    found_ = body_.back(seeds, sources);
    std::vector<ValueId> results;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const ValueId g = found_.sources[i];
      results.push_back(g != kNoValue ? g : nothing(sources[i], arrived[i]));
    }
    for (const auto& [number, gradient] : found_.captures) {
      const Type type = body_.type(body_.captured(number));
      results.push_back(append_sum(b, b.add_input("sum", type), gradient, type));
    }
    b.add_output(append_node(b, "Identity", {go_on_}));
    for (const ValueId v : results) b.add_output(v);
  }

  // Zeros for a state that the iteration does not read; `like` is at hand, the state itself would have to be recorded.
  ValueId nothing(ValueId state, ValueId like) {
    const Type& t = body_.type(state);
    const Type& u = body_.type(like);
    return append_zeros(body_.graph(), keeps_shape(t) && u.shape && *t.shape == *u.shape ? like : state);
  }

  void provide() {
    const std::vector<ValueId> random = body_.take_random();
    for (const ValueId v : random) provide_record(v);
    for (std::size_t k = 0; k < states_; ++k) {
      if (body_.used(body_.formal(2 + k))) provide_record(body_.formal(2 + k));
    }
    for (const auto& [slice, stack] : slices_) {
      if (!body_.used(slice)) continue;
      body_.provide(slice, "Gather", {body_.capture(stack), index()});
      some_stack_ = stack;
    }
    if (body_.used(body_.formal(0))) provide_scalar(0, index());
    if (body_.used(body_.formal(1))) provide_scalar(1, go_on_);
  }

  // Bodies that declare the counter and the condition as [1] are common.
  void provide_scalar(std::size_t formal, ValueId value) {
    const Type& t = subgraph_input_type(c_.node(), 0, formal);
    if (!t.shape || t.shape->size() != 1) return body_.provide(body_.formal(formal), value);
    const ValueId one = body_.graph().add_constant("gradient_constant", Tensor::of<std::int64_t>({1}, {1}));
    body_.provide(body_.formal(formal), "Reshape", {value, one});
  }

  // The number of the forward iteration.
  ValueId index() {
    if (index_ != kNoValue) return index_;
    Graph& b = body_.graph();
    last_ = b.add_value("last", Type::tensor(DataType::int64, SymShape{}));
    index_ = append_node(b, "Sub", {last_, iteration_});
    return index_;
  }

  void provide_record(ValueId v) {
    const Record r = record(v);
    body_.provide(v, r.sequence ? "SequenceAt" : "Gather", {body_.capture(r.outer), index()});
    (r.sequence ? some_sequence_ : some_stack_) = r.outer;
  }

  Record record(ValueId v) {
    const Type type = body_.type(v);
    if (!type.is_tensor() || type.elem == DataType::undefined) {
      fail(ErrorCode::not_implemented,
           "the gradient needs '{}' of each iteration, which is {}; only tensors of a known element type can be kept",
           body_.graph().value(v).name, type.str());
    }
    if (!keeps_shape(type)) return {record_in_sequence(v, type.elem), true};
    SymShape stacked = *type.shape;
    stacked.insert(stacked.begin(), Dim::unknown());
    return {flow::add_result(c_, 0, v, Type::tensor(type.elem, std::move(stacked))), false};
  }

  // The node gets one more loop-carried value, a sequence that grows by `v`.
  ValueId record_in_sequence(ValueId v, DataType elem) {
    const Type type = Type::sequence(Type::tensor(elem));
    const ValueId empty = c_.emit("SequenceEmpty", {}, {{"dtype", static_cast<std::int64_t>(elem)}}).id;
    Node& node = c_.graph().node(c_.id());
    const std::size_t at = node.inputs.size() - 2;
    Graph& body = flow::own_body(c_, 0);
    const ValueId before = body.add_input("kept", type);
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i + 1 < body.inputs().size(); ++i) order.push_back(i);
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(2 + at), body.inputs().size() - 1);
    body.permute_inputs(order);
    const ValueId after = append_node(body, "SequenceInsert", {before, v});
    std::vector<std::pair<ValueId, std::string>> moved;
    while (body.outputs().size() > 1 + at) {
      moved.emplace_back(body.outputs().back(), body.output_names().back());
      body.remove_output(body.outputs().size() - 1);
    }
    body.add_output(after);
    for (; !moved.empty(); moved.pop_back()) body.add_output(moved.back().first, moved.back().second);
    node.inputs.push_back(empty);
    const ValueId outer = c_.graph().add_value(body.value(v).name + "_each", type);
    node.outputs.insert(node.outputs.begin() + static_cast<std::ptrdiff_t>(at), outer);
    c_.graph().value(outer).producer = c_.id();
    node.version = std::max(node.version, 13);  // sequences may be carried
    return outer;
  }

  // The number of iterations of the Loop.
  Expr count() {
    if (some_sequence_ != kNoValue) return c_.emit("SequenceLength", {c_.expr(some_sequence_)});
    if (some_stack_ == kNoValue) {
      const Type& counter = body_.type(body_.formal(0));
      const std::size_t rank = counter.shape ? counter.shape->size() : 0;
      some_stack_ = flow::add_result(c_, 0, body_.formal(0), Type::tensor(DataType::int64, SymShape(rank + 1, Dim::unknown())));
    }
    return c_.emit("Gather", {c_.shape_of(c_.expr(some_stack_)), c_.int_scalar(0)});
  }

  void emit() {
    const Expr n = count();
    if (index_ != kNoValue) body_.provide(last_, body_.capture(c_.emit("Sub", {n, c_.int_scalar(1)}).id));
    Node loop = make_node({}, "Loop", 21, {n.id, kNoValue});
    const auto carry = [&](ValueId initial, Type type) {
      loop.inputs.push_back(initial);
      loop.outputs.push_back(c_.graph().add_value("gradient", std::move(type)));
      return loop.outputs.back();
    };
    for (std::size_t k = 0; k < states_; ++k) {
      if (!active_[k]) continue;
      const Expr y = c_.out(k);
      const ValueId g = carry(c_.dy(k) ? c_.dy(k).id : append_zeros(c_.graph(), y.id), c_.graph().value(y.id).type);
      c_.set(2 + k, c_.expr(g));
    }
    for (const auto& [number, gradient] : found_.captures) {
      const ValueId outer = body_.outside(number);
      c_.set(body_.operand(number), c_.expr(carry(append_zeros(c_.graph(), outer), c_.graph().value(outer).type)));
    }
    loop.subgraphs.push_back(body_.finish("body"));
    c_.graph().add_node(std::move(loop));
  }

  GradientContext& c_;
  std::size_t states_, outputs_;
  std::vector<bool> moving_, active_;
  Body body_;
  Body::Found found_;
  ValueId iteration_ = kNoValue, go_on_ = kNoValue, index_ = kNoValue, last_ = kNoValue;
  std::vector<std::pair<ValueId, ValueId>> slices_;  // of scan outputs' gradients: inside, the whole outside
  ValueId some_stack_ = kNoValue, some_sequence_ = kNoValue;
};

void loop(GradientContext& c) { LoopGradient(c).run(); }

}  // namespace

void register_gradients_loop(GradientTable& t) { t.add("Loop", loop); }

}  // namespace sdx::ops
