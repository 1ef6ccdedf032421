// Scan: ai.onnx 8 (batched, with sequence lengths), 9, 11 (negative axes), 16, 19, 21, 23, 24, 25.

#include <algorithm>

#include "ops/control/element_types.h"
#include "ops/control/signatures.h"
#include "ops/control/slices.h"
#include "ops/control/subgraphs.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

struct Plan {
  std::size_t body = 0;
  std::size_t first = 0;  // index of the first state among the node's inputs (Scan-8 has sequence_lens before them)
  std::size_t states = 0, inputs = 0, outputs = 0;
  std::vector<std::int64_t> input_axes, input_backward, output_axes, output_backward;
};

// A list attribute with one element per scanned value; all zero when missing.
std::vector<std::int64_t> per_value(IntList given, std::string_view name, std::size_t count, bool flags) {
  std::vector<std::int64_t> list = to_vector(given);
  if (list.empty()) list.assign(count, 0);
  if (list.size() != count) {
    fail(ErrorCode::invalid_model, "attribute '{}' must have {} elements, received {}", name, count, list.size());
  }
  for (const std::int64_t v : list) {
    if (flags && v != 0 && v != 1) fail(ErrorCode::invalid_model, "attribute '{}' must hold 0 or 1, received {}", name, v);
  }
  return list;
}

Plan plan_of(const Node& node) {
  Plan p;
  p.body = subgraph_index(node, "body");
  p.first = node.version < 9 ? 1 : 0;
  const auto attr = parse<ScanAttrs>(node);
  const std::int64_t scanned = attr.num_scan_inputs;
  const std::size_t given = node.inputs.size() > p.first ? node.inputs.size() - p.first : 0;
  if (scanned < 1 || static_cast<std::uint64_t>(scanned) > given) {
    fail(ErrorCode::invalid_model, "num_scan_inputs is {}; expected 1 to {}", scanned, given);
  }
  p.inputs = static_cast<std::size_t>(scanned);
  p.states = given - p.inputs;
  if (node.outputs.size() < p.states) {
    fail(ErrorCode::invalid_model, "Scan has {} state variables but only {} outputs", p.states, node.outputs.size());
  }
  p.outputs = node.outputs.size() - p.states;
  check_signature(node, p.body, given, node.outputs.size());
  const char* directions = node.version < 9 ? "directions" : "scan_input_directions";
  p.input_backward = per_value(attr.input_directions, directions, p.inputs, true);
  p.output_backward = per_value(attr.output_directions, "scan_output_directions", p.outputs, true);
  p.input_axes = per_value(attr.input_axes, "scan_input_axes", p.inputs, false);
  p.output_axes = per_value(attr.output_axes, "scan_output_axes", p.outputs, false);
  return p;
}

Type with_axis(const Type& item, std::int64_t axis, const Dim& extent) {
  if (!item.is_tensor() || !item.shape) return item;
  Type out = item;
  const std::int64_t at = normalize_axis(axis, item.shape->size() + 1);
  out.shape->insert(out.shape->begin() + at, extent);
  return out;
}

// Scan-8: every value has a batch axis first, which the body does not see.
Type drop_batch(const Type& t, Dim& batch) {
  if (!t.is_tensor() || !t.shape) return t;
  if (t.shape->empty()) fail(ErrorCode::invalid_model, "Scan-8 needs a batch axis on every value, received a scalar");
  Type out = t;
  if (!batch.is_const()) batch = out.shape->front();
  out.shape->erase(out.shape->begin());
  return out;
}

Type add_batch(const Type& t, const Dim& batch) {
  if (!t.is_tensor() || !t.shape) return t;
  Type out = t;
  out.shape->insert(out.shape->begin(), batch);
  return out;
}

void infer_scan(InferContext& c) {
  const Plan p = plan_of(c.node());
  const bool batched = c.version() < 9;
  Dim batch, length;
  std::vector<Type> states, scanned;
  for (std::size_t i = 0; i < p.states; ++i) {
    const Type& t = c.type(p.first + i);
    states.push_back(batched ? drop_batch(t, batch) : t);
  }
  for (std::size_t i = 0; i < p.inputs; ++i) {
    Type t = c.type(p.first + p.states + i);
    if (batched) t = drop_batch(t, batch);
    if (t.is_tensor() && t.shape) {
      const std::int64_t axis = normalize_axis(p.input_axes[i], t.shape->size());
      const Dim d = (*t.shape)[static_cast<std::size_t>(axis)];
      if (length.is_const() && d.is_const() && !(length == d)) {
        c.fail("scan input {} has {} elements along its axis, an earlier one {}", i, d.value(), length.value());
      }
      if (!length.is_const()) length = d;
      t.shape->erase(t.shape->begin() + axis);
    }
    scanned.push_back(std::move(t));
  }
  std::vector<Type> results;
  widen_until_stable(states, "the state variable", [&](const std::vector<Type>& now) {
    std::vector<Type> formals = now;
    formals.insert(formals.end(), scanned.begin(), scanned.end());
    results = c.infer_subgraph(p.body, formals);
    return std::vector<Type>(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(p.states));
  });
  for (std::size_t i = 0; i < p.states; ++i) c.output(i, batched ? add_batch(states[i], batch) : states[i]);
  const auto positive = [](const Dim& d) { return d.is_const() && d.value() > 0; };
  const bool runs = positive(length) && (!batched || (positive(batch) && !c.has_input(0)));
  for (std::size_t i = 0; i < p.outputs; ++i) {
    Type item = results[p.states + i];
    if (!runs) item = element_of_any_run(c.node(), p.states + i, std::move(item));
    Type t = with_axis(item, p.output_axes[i], length);
    c.output(p.states + i, batched ? add_batch(t, batch) : std::move(t));
  }
}

// The destination of one scan output's items: the whole output tensor, as soon as the first item determines its type and shape.
struct Target {
  Tensor tensor;
  std::size_t axis = 0;
};

void start_target(Target& t, const Tensor& item, std::int64_t axis, std::int64_t length) {
  Shape shape = item.shape();
  t.axis = static_cast<std::size_t>(normalize_axis(axis, shape.size() + 1));
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(t.axis), length);
  t.tensor = Tensor(item.dtype(), std::move(shape));
}

void put_item(OpContext& c, Target& t, std::int64_t at, const Tensor& item) {
  Shape expected = t.tensor.shape();
  expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(t.axis));
  if (item.dtype() != t.tensor.dtype() || item.shape() != expected) {
    c.fail("an iteration of Scan gives {}, but the iterations before it gave {}{}", item.type_string(), name(t.tensor.dtype()),
           to_string(expected));
  }
  put_slice(t.tensor, t.axis, at, item);
}

void fill_with_zeros(Tensor& t) {
  if (t.dtype() != DataType::string && t.bytes() > 0) std::fill_n(static_cast<char*>(t.mutable_data()), t.bytes(), char{0});
}

// Output number `k` of a pass without a turn.
Tensor unrun_output(OpContext& c, const Plan& p, std::size_t k, std::int64_t total) {
  const Type item = unrun_element(c.node(), p.body, p.states + k, p.states + k);
  const std::size_t rank = item.shape ? item.shape->size() : 0;
  const auto axis = static_cast<std::size_t>(normalize_axis(p.output_axes[k], rank + 1));
  Shape shape = empty_stack(item, axis).shape();
  shape[axis] = total;
  Tensor out(item.elem, std::move(shape));
  fill_with_zeros(out);
  return out;
}

// One pass over the sequence. `inputs` are the scanned tensors, `states` in and out; returns the stacked outputs: `total`
// long, of which the first `length` are filled (Scan-8 pads shorter sequences with zeros).
std::vector<Target> scan_once(OpContext& c, const Plan& p, std::vector<Value>& states, const std::vector<Tensor>& inputs,
                              std::int64_t length, std::int64_t total) {
  std::vector<Target> targets(p.outputs);
  for (std::int64_t i = 0; i < length; ++i) {
    c.stop().check();
    std::vector<Value> formals;
    for (Value& v : states) formals.push_back(std::move(v));
    for (std::size_t k = 0; k < p.inputs; ++k) {
      const auto axis = static_cast<std::size_t>(normalize_axis(p.input_axes[k], inputs[k].rank()));
      formals.emplace_back(take_slice(inputs[k], axis, p.input_backward[k] != 0 ? length - 1 - i : i));
    }
    std::vector<Value> results = c.run_subgraph(p.body, std::move(formals));
    if (results.size() != p.states + p.outputs) c.fail("the body of Scan gave {} outputs", results.size());
    for (std::size_t k = 0; k < p.states; ++k) states[k] = std::move(results[k]);
    for (std::size_t k = 0; k < p.outputs; ++k) {
      const Tensor& item = results[p.states + k].tensor();
      if (i == 0) {
        start_target(targets[k], item, p.output_axes[k], total);
        if (total != length || is_sub_byte(item.dtype())) fill_with_zeros(targets[k].tensor);
      }
      put_item(c, targets[k], p.output_backward[k] != 0 ? length - 1 - i : i, item);
    }
  }
  if (length == 0) {
    for (std::size_t k = 0; k < p.outputs; ++k) targets[k].tensor = unrun_output(c, p, k, total);
  }
  return targets;
}

void run_scan_9(OpContext& c) {
  const Plan p = plan_of(c.node());
  std::vector<Value> states;
  for (std::size_t i = 0; i < p.states; ++i) states.push_back(c.input_value(i));
  std::vector<Tensor> inputs;
  std::int64_t length = -1;
  for (std::size_t i = 0; i < p.inputs; ++i) {
    inputs.push_back(c.input(p.states + i));
    const std::int64_t n = inputs[i].dim(static_cast<std::size_t>(normalize_axis(p.input_axes[i], inputs[i].rank())));
    if (length >= 0 && n != length) c.fail("scan input {} has {} elements along its axis, an earlier one {}", i, n, length);
    length = n;
  }
  std::vector<Target> targets = scan_once(c, p, states, inputs, length, length);
  for (std::size_t k = 0; k < p.states; ++k) c.set_output(k, std::move(states[k]));
  for (std::size_t k = 0; k < p.outputs; ++k) c.set_output(p.states + k, std::move(targets[k].tensor));
}

// One sample of Scan-8's batch: its inputs, and later its results.
struct Sample {
  std::int64_t length = 0;
  std::vector<Value> states;
  std::vector<Tensor> inputs;
  std::vector<Target> outputs;
};

Sample sample_at(OpContext& c, const Plan& p, std::int64_t at, std::int64_t batch, std::int64_t total) {
  Sample s;
  for (std::size_t i = 0; i < p.states + p.inputs; ++i) {
    const Tensor& t = c.input(p.first + i);
    const std::size_t least = i < p.states ? 1 : 2;
    if (t.rank() < least || t.dim(0) != batch || (least == 2 && t.dim(1) != total)) {
      c.fail("input {} of Scan-8 is {}; expected the batch {} and, if scanned, the sequence {} first", p.first + i,
             t.type_string(), batch, total);
    }
    if (i < p.states) {
      s.states.emplace_back(take_slice(t, 0, at));
    } else {
      s.inputs.push_back(take_slice(t, 0, at));
    }
  }
  return s;
}

// No sample, so the body never runs: the states stay as they are.
void run_without_samples(OpContext& c, const Plan& p, std::int64_t total) {
  for (std::size_t k = 0; k < p.states; ++k) c.set_output(k, c.input(p.first + k).clone());
  for (std::size_t k = 0; k < p.outputs; ++k) {
    const Tensor one = unrun_output(c, p, k, total);
    Shape shape = one.shape();
    shape.insert(shape.begin(), 0);
    c.set_output(p.states + k, Tensor(one.dtype(), std::move(shape)));
  }
}

// Samples without a turn have outputs like the others', which know the shape.
void agree_on_shapes(std::vector<Sample>& samples) {
  const auto ran = std::find_if(samples.begin(), samples.end(), [](const Sample& s) { return s.length > 0; });
  if (ran == samples.end()) return;
  for (Sample& s : samples) {
    if (s.length > 0) continue;
    for (std::size_t k = 0; k < s.outputs.size(); ++k) {
      const Tensor& like = ran->outputs[k].tensor;
      s.outputs[k].tensor = Tensor(like.dtype(), like.shape());
      fill_with_zeros(s.outputs[k].tensor);
    }
  }
}

void run_scan_8(OpContext& c) {
  const Plan p = plan_of(c.node());
  const Tensor& lead = c.input(p.first + p.states);
  if (lead.rank() < 2) c.fail("scan input 0 of Scan-8 must have axes [batch, sequence, …], received {}", lead.type_string());
  const std::int64_t batch = lead.dim(0), total = lead.dim(1);
  std::vector<std::int64_t> lengths;  // empty: all are `total`
  if (const Tensor* t = c.optional_input(0)) lengths = to_ints(*t);
  if (c.has_input(0) && lengths.size() != static_cast<std::size_t>(batch))
    c.fail("sequence_lens has {} elements, expected {}", lengths.size(), batch);
  if (batch == 0) return run_without_samples(c, p, total);
  std::vector<Sample> samples;
  for (std::int64_t b = 0; b < batch; ++b) {
    c.stop().check();
    const std::int64_t length = lengths.empty() ? total : lengths[static_cast<std::size_t>(b)];
    if (length < 0 || length > total) c.fail("sequence_lens[{}] is {}; expected 0 to {}", b, length, total);
    Sample& s = samples.emplace_back(sample_at(c, p, b, batch, total));
    s.length = length;
    s.outputs = scan_once(c, p, s.states, s.inputs, length, total);
    s.inputs.clear();
  }
  agree_on_shapes(samples);
  for (std::size_t k = 0; k < p.states + p.outputs; ++k) {
    SliceCollector all;
    for (Sample& s : samples) all.append(k < p.states ? s.states[k].tensor() : s.outputs[k - p.states].tensor);
    c.set_output(k, all.finish());
  }
}

}  // namespace

void register_scan(OpTable& t) {
  t.add(OpDef("Scan", 8)
            .in("sequence_lens", "I", types::int64, Arity::optional)
            .in("initial_state_and_scan_inputs", "", types::any_tensor, Arity::variadic)
            .out("final_state_and_scan_outputs", "", types::any_tensor, Arity::variadic)
            .attr("body", AttrKind::g, true)
            .attrs<ScanAttrs>()
            .infer_with(infer_scan)
            .run_with(run_scan_8));
  t.add(OpDef("Scan", 9)
            .in("initial_state_and_scan_inputs", "", types::any_tensor, Arity::variadic)
            .out("final_state_and_scan_outputs", "", types::any_tensor, Arity::variadic)
            .attr("body", AttrKind::g, true)
            .attrs<ScanAttrs>()
            .infer_with(infer_scan)
            .run_with(run_scan_9));
}

}  // namespace sdx::ops
