// Gradient of Scan: a Scan in the other direction. Each iteration computes forward again from the states that it started with,
// which the forward Scan gives as further outputs.

#include <algorithm>

#include "base/error.h"
#include "ops/control/signatures.h"
#include "ops/gradients/flow/body.h"

namespace sdx::ops {
namespace {

using flow::Body;

std::vector<std::int64_t> list_or_zeros(IntList given, std::size_t count) {
  return given.empty() ? std::vector<std::int64_t>(count, 0) : to_vector(given);
}

struct Scanned {
  std::vector<std::int64_t> axes, directions;

  void add(std::int64_t axis, std::int64_t direction) {
    axes.push_back(axis);
    directions.push_back(direction);
  }
};

class ScanGradient {
 public:
  explicit ScanGradient(GradientContext& c) : c_(c), attr_(parse<ScanAttrs>(c)), body_(c, 0) {
    inputs_ = static_cast<std::size_t>(attr_.num_scan_inputs);
    states_ = c.num_inputs() - inputs_;
    outputs_ = c.node().outputs.size();
    in_ = {list_or_zeros(attr_.input_axes, inputs_), list_or_zeros(attr_.input_directions, inputs_)};
    out_ = {list_or_zeros(attr_.output_axes, outputs_ - states_), list_or_zeros(attr_.output_directions, outputs_ - states_)};
  }

  void run() {
    find_moving();
    go_back();
    body_.prune();
    node_.op_type = "Scan";
    node_.version = 21;
    carry();
    scan();
    finish();
  }

 private:
  void find_moving() {
    std::vector<ValueId> xs;
    for (std::size_t j = 0; j < body_.captures(); ++j) {
      if (body_.wanted(j)) xs.push_back(body_.captured(j));
    }
    for (std::size_t i = 0; i < states_ + inputs_; ++i) {
      if (c_.wants(i)) xs.push_back(body_.formal(i));
    }
    for (std::size_t k = 0; k < states_; ++k) moving_.push_back(c_.wants(k));
    for (bool changed = true; changed;) {
      changed = false;
      const std::vector<bool> depends = depend_on(body_.graph(), xs);
      for (std::size_t k = 0; k < states_; ++k) {
        if (moving_[k] || !depends[body_.output(k)]) continue;
        moving_[k] = changed = true;
        xs.push_back(body_.formal(k));
      }
    }
    for (std::size_t k = 0; k < states_; ++k) {
      if (moving_[k]) c_.out(k);  // an output that was left out is added before others are
    }
  }

  void go_back() {
    Graph& b = body_.graph();
    std::vector<Seed> seeds;
    std::vector<ValueId> sources, arrived;
    for (std::size_t k = 0; k < states_; ++k) {
      if (!moving_[k]) continue;
      arrived.push_back(b.add_input("gradient", body_.type(body_.output(k))));
      seeds.push_back({body_.output(k), arrived.back()});
      sources.push_back(body_.formal(k));
    }
    for (std::size_t i = states_; i < outputs_; ++i) {
      slices_.push_back(kNoValue);
      if (!c_.dy(i)) continue;
      slices_.back() = b.add_value("gradient", body_.type(body_.output(i)));
      seeds.push_back({body_.output(i), slices_.back()});
    }
    for (std::size_t i = states_; i < states_ + inputs_; ++i) {
      if (c_.wants(i)) sources.push_back(body_.formal(i));
    }
    found_ = body_.back(seeds, sources);
    std::vector<ValueId> results;
    for (std::size_t i = 0; i < arrived.size(); ++i) {
      const ValueId g = found_.sources[i];
      results.push_back(g != kNoValue ? g : append_zeros(b, arrived[i]));  // a state keeps its shape
    }
    for (const auto& [number, gradient] : found_.captures) {
      const Type type = body_.type(body_.captured(number));
      results.push_back(append_sum(b, b.add_input("sum", type), gradient, type));
    }
    for (const ValueId v : results) b.add_output(v);
    for (std::size_t i = arrived.size(); i < found_.sources.size(); ++i) {
      if (found_.sources[i] != kNoValue) b.add_output(found_.sources[i]);
    }
  }

  ValueId add_output(const Type& type) {
    node_.outputs.push_back(c_.graph().add_value("gradient", type));
    return node_.outputs.back();
  }

  void carry() {
    for (std::size_t k = 0; k < states_; ++k) {
      if (!moving_[k]) continue;
      const Expr y = c_.out(k);
      node_.inputs.push_back(c_.dy(k) ? c_.dy(k).id : append_zeros(c_.graph(), y.id));
      c_.set(k, c_.expr(add_output(c_.graph().value(y.id).type)));
    }
    for (const auto& [number, gradient] : found_.captures) {
      const ValueId outer = body_.outside(number);
      node_.inputs.push_back(append_zeros(c_.graph(), outer));
      c_.set(body_.operand(number), c_.expr(add_output(c_.graph().value(outer).type)));
    }
  }

  // Declares the inputs that arrive slice by slice, in the opposite direction of the forward Scan.
  void scan() {
    const std::vector<ValueId> random = body_.take_random();
    for (const ValueId v : random) scan_record(v);
    for (std::size_t k = 0; k < states_; ++k) {
      if (body_.used(body_.formal(k))) scan_record(body_.formal(k));
    }
    for (std::size_t i = 0; i < inputs_; ++i) {
      const ValueId formal = body_.formal(states_ + i);
      // One at least says how many there are.
      if (body_.used(formal) || (i + 1 == inputs_ && given_.axes.empty())) {
        scan_input(c_.in(states_ + i).id, formal, in_.axes[i], 1 - in_.directions[i]);
      }
    }
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      if (slices_[i] == kNoValue || !body_.used(slices_[i])) continue;
      scan_input(c_.dy(states_ + i).id, slices_[i], out_.axes[i], 1 - out_.directions[i]);
    }
    std::size_t next = static_cast<std::size_t>(std::count(moving_.begin(), moving_.end(), true));
    for (std::size_t i = 0; i < inputs_; ++i) {
      if (!c_.wants(states_ + i) || found_.sources[next++] == kNoValue) continue;
      c_.set(states_ + i, c_.expr(add_output(c_.graph().value(c_.in(states_ + i).id).type)));
      made_.add(in_.axes[i], 1 - in_.directions[i]);
    }
  }

  void scan_input(ValueId outer, ValueId v, std::int64_t axis, std::int64_t direction) {
    node_.inputs.push_back(outer);
    body_.provide(v, body_.graph().add_input("slice", body_.type(v)));
    given_.add(axis, direction);
  }

  void scan_record(ValueId v) {
    Type type = body_.type(v);
    if (type.shape) type.shape->insert(type.shape->begin(), Dim::unknown());
    const ValueId outer = flow::add_result(c_, 0, v, type);
    Attributes& a = c_.graph().node(c_.id()).attributes;
    for (const char* list : {"scan_output_axes", "scan_output_directions"}) {
      std::vector<std::int64_t> values = a.get_ints(list);
      if (values.empty()) continue;
      values.push_back(0);
      a.set(list, std::move(values));
    }
    scan_input(outer, v, 0, 1);
  }

  void finish() {
    if (node_.outputs.empty()) return;  // nothing depends on what is asked for
    node_.attributes.set("num_scan_inputs", static_cast<std::int64_t>(given_.axes.size()));
    node_.attributes.set("scan_input_axes", given_.axes);
    node_.attributes.set("scan_input_directions", given_.directions);
    if (!made_.axes.empty()) {
      node_.attributes.set("scan_output_axes", made_.axes);
      node_.attributes.set("scan_output_directions", made_.directions);
    }
    node_.subgraphs.push_back(body_.finish("body"));
    c_.graph().add_node(std::move(node_));
  }

  GradientContext& c_;
  ScanAttrs attr_;
  Body body_;
  Body::Found found_;
  Node node_;
  std::size_t states_ = 0, inputs_ = 0, outputs_ = 0;
  Scanned in_, out_;      // of the node
  Scanned given_, made_;  // of its gradient
  std::vector<bool> moving_;
  std::vector<ValueId> slices_;  // by scan output: what one iteration gets of its gradient
};

void scan(GradientContext& c) {
  if (c.version() < 9) c.refuse("Scan of opset 8 has a batch; only Scan of opset 9 and later has a gradient");
  ScanGradient(c).run();
}

}  // namespace

void register_gradients_scan(GradientTable& t) { t.add("Scan", scan); }

}  // namespace sdx::ops
