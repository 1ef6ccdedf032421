#include "ops/gradient.h"

#include <fmt/format.h>

#include "base/error.h"
#include "graph/edit.h"
#include "ops/custom.h"
#include "ops/gradient_width.h"
#include "ops/gradients/fused.h"
#include "ops/op.h"
#include "tensor/element.h"

namespace sdx::ops {

void register_all_gradients(GradientTable& table);  // generated: gradient_list.cc

namespace {

// Reductions take axes as inputs since 18, and this version is the oldest with every operator that is emitted.
constexpr int kEmitted = 21;

// The axes along which `small` was broadcast to `big`; false where the extents that are known do not tell.
bool broadcast_axes(const SymShape* big, const SymShape* small, std::vector<std::int64_t>& axes) {
  if (big == nullptr || small == nullptr || small->size() > big->size()) return false;
  const std::size_t missing = big->size() - small->size();
  for (std::size_t i = 0; i < big->size(); ++i) {
    const Dim& b = (*big)[i];
    if (i >= missing && b == (*small)[i - missing]) continue;
    if (i >= missing && !((*small)[i - missing] == Dim(1))) return false;
    axes.push_back(static_cast<std::int64_t>(i));
  }
  return true;
}

// The element type of a tensor, or of the tensors in a sequence.
DataType element_of(const Type& t) { return t.inner ? element_of(*t.inner) : t.elem; }

bool floating(DataType t) { return t != DataType::undefined && (types::floats & bit(t)) != 0; }

}  // namespace

std::vector<ValueId> operands(const Node& node) {
  std::vector<ValueId> all = node.inputs;
  for (const Subgraph& s : node.subgraphs) all.insert(all.end(), s.captures.begin(), s.captures.end());
  return all;
}

GradientContext::GradientContext(Graph& graph, NodeId id, std::vector<ValueId> of_outputs, std::vector<bool> wanted, bool fused)
    : graph_(graph),
      id_(id),
      node_(graph.node(id)),
      of_outputs_(std::move(of_outputs)),
      wanted_(std::move(wanted)),
      fused_(fused),
      results_(operands(node_).size(), kNoValue) {
  const auto choose = [&](ValueId v) {
    const DataType elem = v == kNoValue ? DataType::undefined : element_of(graph.value(v).type);
    if (elem_ == DataType::undefined && floating(elem)) elem_ = elem;
  };
  const std::vector<ValueId> all = operands(node_);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (wants(i)) choose(all[i]);
  }
  for (const ValueId v : of_outputs_) choose(v);
}

Expr GradientContext::in(std::size_t i) { return has_input(i) ? Expr{this, node_.inputs[i]} : Expr{}; }

Expr GradientContext::out(std::size_t i) {
  while (node_.outputs.size() <= i) node_.outputs.push_back(kNoValue);
  if (node_.outputs[i] == kNoValue) {
    const ValueId added = graph_.add_value(graph_.value(node_.outputs[0]).name + "_also");
    node_.outputs[i] = added;
    graph_.node(id_).outputs = node_.outputs;
    graph_.value(added).producer = id_;
  }
  return {this, node_.outputs[i]};
}

Expr GradientContext::dy(std::size_t i) {
  return i < of_outputs_.size() && of_outputs_[i] != kNoValue ? Expr{this, of_outputs_[i]} : Expr{};
}

Expr GradientContext::dy_or_zeros(std::size_t i) {
  const Expr g = dy(i);
  return g ? g : zeros_like(out(i));
}

void GradientContext::set(std::size_t i, Expr gradient) {
  if (wants(i)) results_[i] = gradient.id;
}

void GradientContext::set_broadcast(std::size_t i, Expr gradient) {
  if (!wants(i)) return;
  std::vector<std::int64_t> axes;
  if (!broadcast_axes(shape(out(0)), shape(in(i)), axes)) return set(i, sum_to(gradient, in(i)));
  const std::size_t missing = shape(out(0))->size() - shape(in(i))->size();
  // The axes that the input lacks are the first, and they come first in `axes`.
  if (missing == 0 || missing == axes.size()) return set(i, sum(gradient, axes, missing == 0));
  set(i, reshape(sum(gradient, axes), target_shape(in(i))));
}

std::int64_t GradientContext::rank(Expr e) const {
  const SymShape* s = shape(e);
  if (s == nullptr) refuse(fmt::format("the rank of '{}' is not known", graph_.value(e.id).name));
  return static_cast<std::int64_t>(s->size());
}

const SymShape* GradientContext::shape(Expr e) const {
  const Type& t = graph_.value(e.id).type;
  return t.is_tensor() && t.shape ? &*t.shape : nullptr;
}

bool GradientContext::same_shape(Expr a, Expr b) const {
  if (a.id == b.id) return true;
  const SymShape* s = shape(a);
  const SymShape* t = shape(b);
  return s != nullptr && t != nullptr && *s == *t;
}

bool GradientContext::is_float(Expr e) const { return e && floating(graph_.value(e.id).type.elem); }

DataType GradientContext::dtype(Expr e) const {
  const Type& t = graph_.value(e.id).type;
  return t.is_tensor() ? t.elem : DataType::undefined;
}

const Tensor* GradientContext::value(std::size_t i) const {
  return has_input(i) ? fixed_value(graph_, node_.inputs[i]) : nullptr;
}

std::vector<Expr> GradientContext::add(std::string domain, std::string op, int version, const std::vector<Expr>& inputs,
                                       std::size_t outputs, Attributes attributes) {
  Node n = make_node({}, std::move(op), version, {}, std::move(attributes), std::move(domain));
  n.custom = node_.custom && n.domain == node_.domain && n.op_type == node_.op_type ? node_.custom : nullptr;
  for (const Expr& e : inputs) n.inputs.push_back(e.id);
  std::vector<Expr> out;
  for (std::size_t i = 0; i < outputs; ++i) {
    out.push_back({this, graph_.add_value("gradient")});
    n.outputs.push_back(out.back().id);
  }
  graph_.add_node(std::move(n));
  return out;
}

Expr GradientContext::emit(const char* op, std::initializer_list<Expr> inputs, EmittedAttributes attributes) {
  return emit_many(op, std::vector<Expr>(inputs), 1, attributes)[0];
}

Expr GradientContext::emit(const char* op, const std::vector<Expr>& inputs, EmittedAttributes attributes) {
  return emit_many(op, inputs, 1, attributes)[0];
}

std::vector<Expr> GradientContext::emit_many(const char* op, const std::vector<Expr>& inputs, std::size_t outputs,
                                             EmittedAttributes attributes) {
  return add("", op, kEmitted, inputs, outputs, attributes_of(attributes));
}

Expr GradientContext::emit_ms(const char* op, const std::vector<Expr>& inputs, EmittedAttributes attributes) {
  return add("com.microsoft", op, 1, inputs, 1, attributes_of(attributes))[0];
}

std::vector<Expr> GradientContext::emit_with(const char* op, const std::vector<Expr>& inputs,
                                             std::initializer_list<const char*> attributes, std::size_t outputs) {
  Attributes kept;
  for (const char* name : attributes) {
    if (const AttributeValue* value = node_.attributes.find(name)) kept.set(name, *value);
  }
  return add("", op, kEmitted, inputs, outputs, std::move(kept));
}

Expr GradientContext::repeat(const std::vector<Expr>& inputs, EmittedAttributes changed, std::size_t outputs) {
  return repeat_many(inputs, changed, outputs)[0];
}

std::vector<Expr> GradientContext::repeat_many(const std::vector<Expr>& inputs, EmittedAttributes changed, std::size_t outputs) {
  Attributes attributes = node_.attributes;
  for (const auto& [name, value] : changed) attributes.set(name, value);
  return add(node_.domain, node_.op_type, node_.version, inputs, outputs, std::move(attributes));
}

std::vector<Expr> GradientContext::emit_foreign(const char* domain, const char* op, int version, const std::vector<Expr>& inputs,
                                                std::size_t outputs, Attributes attributes, const std::vector<bool>& present) {
  std::vector<Expr> results = add(domain, op, version, inputs, outputs, std::move(attributes));
  for (std::size_t i = 0; i < present.size(); ++i) {
    if (present[i]) continue;
    graph_.node(graph_.value(results[i].id).producer).outputs[i] = kNoValue;
    graph_.value(results[i].id).producer = kNoNode;
    results[i] = {};
  }
  return results;
}

Expr GradientContext::constant(Tensor tensor) { return {this, graph_.add_constant("gradient_constant", std::move(tensor))}; }

Expr GradientContext::scalar(double value) {
  Tensor t(elem_ == DataType::undefined ? DataType::float32 : elem_, {});
  set_element(t, 0, value);
  return constant(std::move(t));
}

Expr GradientContext::ints(const std::vector<std::int64_t>& values) { return constant(from_ints(values)); }

Expr GradientContext::int_scalar(std::int64_t value) { return constant(Tensor::scalar<std::int64_t>(value)); }

Expr GradientContext::shape_of(Expr e) { return emit("Shape", {e}); }

Expr GradientContext::extents(Expr e, std::int64_t from, std::int64_t to) {
  return emit("Shape", {e}, {{"start", from}, {"end", to}});
}

Expr GradientContext::reshape(Expr e, Expr shape) { return emit("Reshape", {e, shape}, {{"allowzero", std::int64_t{1}}}); }

Expr GradientContext::reshape_like(Expr e, Expr like) { return same_shape(e, like) ? e : reshape(e, target_shape(like)); }

Expr GradientContext::target_shape(Expr e) {
  const SymShape* s = shape(e);
  if (s == nullptr) return shape_of(e);
  std::vector<std::int64_t> extents;
  std::size_t open = 0;
  bool empty = false;  // beside an extent of 0 nothing says what -1 stands for
  for (const Dim& d : *s) {
    extents.push_back(d.is_const() ? d.value() : -1);
    open += d.is_const() ? 0 : 1;
    empty = empty || extents.back() == 0;
  }
  return open > 1 || (open == 1 && empty) ? shape_of(e) : ints(extents);
}

Expr GradientContext::sum(Expr e, const std::vector<std::int64_t>& axes, bool keep) {
  if (axes.empty()) return e;
  return emit("ReduceSum", {e, ints(axes)}, {{"keepdims", std::int64_t{keep}}});
}

Expr GradientContext::mean(Expr e, const std::vector<std::int64_t>& axes, bool keep) {
  if (axes.empty()) return e;
  return emit("ReduceMean", {e, ints(axes)}, {{"keepdims", std::int64_t{keep}}});
}

// An axis of extent 1 is summed over whether or not it was broadcast, so that only the smaller shape matters.
Expr GradientContext::sum_to(Expr e, Expr like) {
  if (same_shape(e, like)) return e;
  const Expr small = shape_of(like);
  const Expr missing = emit("Sub", {emit("Size", {shape_of(e)}), emit("Size", {small})});
  const Expr ones = emit("ConstantOfShape", {emit("Unsqueeze", {missing, ints({0})})}, {{"value", from_ints({1})}});
  const Expr padded = emit("Concat", {ones, small}, {{"axis", std::int64_t{0}}});
  const Expr axes = emit("Squeeze", {emit("NonZero", {emit("Equal", {padded, int_scalar(1)})}), ints({0})});
  const Expr summed = emit("ReduceSum", {e, axes}, {{"keepdims", std::int64_t{1}}, {"noop_with_empty_axes", std::int64_t{1}}});
  return reshape(summed, small);
}

// If the type is known, `like` itself is not needed.
Expr GradientContext::cast_like(Expr e, Expr like) {
  const Type& type = graph_.value(like.id).type;
  if (!type.is_tensor() || type.elem == DataType::undefined) return emit("CastLike", {e, like});
  return emit("Cast", {e}, {{"to", static_cast<std::int64_t>(type.elem)}});
}

Expr GradientContext::zeros_like(Expr e) { return emit("Expand", {scalar(0), shape_of(e)}); }

Expr GradientContext::number(Expr x) {
  const Expr end = emit("Add", {emit("Size", {x}), int_scalar(1)});
  return reshape(emit("Range", {int_scalar(1), end, int_scalar(1)}), shape_of(x));
}

Expr GradientContext::add_by_position(Expr x, Expr gradient, Expr positions) {
  const Expr all = ints({-1});
  const Expr slots = emit("Unsqueeze", {emit("Add", {emit("Size", {x}), int_scalar(1)}), ints({0})});
  const Expr zeros = emit("Expand", {scalar(0), slots});
  const Expr flat = emit("ScatterElements", {zeros, emit("Reshape", {positions, all}), emit("Reshape", {gradient, all})},
                         {{"axis", std::int64_t{0}}, {"reduction", std::string("add")}});
  return reshape(emit("Slice", {flat, ints({1}), slots}), shape_of(x));
}

void GradientContext::refuse(const std::string& why) const {
  fail(ErrorCode::not_implemented, "no gradient of {} (opset {}): {}", node_.op_type, node_.version, why);
}

GradientContext& Expr::here() const {
  if (context == nullptr) fail(ErrorCode::internal, "a gradient reads an input that its node leaves out");
  return *context;
}

Expr operator+(Expr a, Expr b) { return call("Add", a, b); }
Expr operator-(Expr a, Expr b) { return call("Sub", a, b); }
Expr operator*(Expr a, Expr b) { return call("Mul", a, b); }
Expr operator/(Expr a, Expr b) { return call("Div", a, b); }
Expr operator-(Expr a) { return call("Neg", a); }
Expr operator+(Expr a, double b) { return a + a.here().scalar(b); }
Expr operator-(Expr a, double b) { return a - a.here().scalar(b); }
Expr operator*(Expr a, double b) { return a * a.here().scalar(b); }
Expr operator/(Expr a, double b) { return a / a.here().scalar(b); }
Expr operator-(double a, Expr b) { return b.here().scalar(a) - b; }
Expr operator+(double a, Expr b) { return b + a; }
Expr operator*(double a, Expr b) { return b * a; }
Expr operator/(double a, Expr b) { return b.here().scalar(a) / b; }
Expr call(const char* op, Expr a) { return a.here().emit(op, {a}); }
Expr call(const char* op, Expr a, Expr b) { return a.here().emit(op, {a, b}); }
Expr call(const char* op, Expr a, double b) { return call(op, a, a.here().scalar(b)); }
Expr where(Expr condition, Expr a, Expr b) { return condition.here().emit("Where", {condition, a, b}); }
Expr square(Expr a) { return a * a; }

void GradientTable::add(std::string name, GradientFn fn) {
  const bool fresh = functions_.emplace(std::move(name), fn).second;
  SDX_ASSERT(fresh);
}

void GradientTable::add(std::initializer_list<const char*> names, GradientFn fn) {
  for (const char* name : names) add(std::string(name), fn);
}

void GradientTable::add(std::initializer_list<Entry> entries) {
  for (const Entry& e : entries) add(e.name, e.fn);
}

GradientFn GradientTable::find(std::string_view domain, std::string_view name) const {
  const bool onnx = domain.empty() || domain == "ai.onnx";
  const auto it = onnx ? functions_.find(name) : functions_.find(fmt::format("{}.{}", domain, name));
  return it == functions_.end() ? nullptr : it->second;
}

const GradientTable& gradients() {
  static const GradientTable instance = [] {
    GradientTable t;
    register_all_gradients(t);
    return t;
  }();
  return instance;
}

namespace {

// A library speaks of values by name; those of its own nodes become new values.
std::vector<ValueId> emit_custom(Graph& graph, const Node& node, const std::vector<ValueId>& of_outputs) {
  GradientNames names;
  std::map<std::string, ValueId> known;
  const auto name_all = [&](const std::vector<ValueId>& ids, std::vector<std::string>& out) {
    for (const ValueId v : ids) {
      out.push_back(v == kNoValue ? "" : graph.value(v).name);
      if (v != kNoValue) known[out.back()] = v;
    }
  };
  name_all(node.inputs, names.inputs);
  name_all(node.outputs, names.outputs);
  name_all(of_outputs, names.of_outputs);
  const GradientNodes emitted = custom_gradient(node, names);
  for (const GradientNode& e : emitted.nodes) {
    Node n = make_node({}, e.op_type, e.version, {}, e.attributes, e.domain);
    if (e.domain == node.domain && e.op_type == node.op_type) n.custom = node.custom;
    for (const std::string& name : e.inputs) n.inputs.push_back(name.empty() ? kNoValue : known.at(name));
    for (const std::string& name : e.outputs) {
      n.outputs.push_back(name.empty() ? kNoValue : graph.add_value(name));
      if (!name.empty()) known[name] = n.outputs.back();
    }
    graph.add_node(std::move(n));
  }
  std::vector<ValueId> out;
  for (const std::string& name : emitted.of_inputs) out.push_back(name.empty() ? kNoValue : known.at(name));
  return out;
}

}  // namespace

std::vector<ValueId> emit_gradient(Graph& graph, NodeId id, std::vector<ValueId> of_outputs, std::vector<bool> wanted,
                                   bool fused) {
  try {
    const Node& node = graph.node(id);
    if (node.custom) return emit_custom(graph, Node(node), of_outputs);
    const GradientFn fn = gradients().find(node.domain, node.op_type);
    if (fused) {
      GradientContext context(graph, id, of_outputs, wanted, true);
      if (emit_fused(context)) return context.results();
    }
    if (fn == nullptr) fail(ErrorCode::not_implemented, "operator {} has no gradient", node.op_type);
    GradientContext context(graph, id, std::move(of_outputs), std::move(wanted), fused);
    if (needs_width(context)) {
      context.through(in_float32);
    } else {
      fn(context);
    }
    return context.results();
  } catch (Error& e) {
    e.add_context("in the gradient of " + graph.describe(id));
    throw;
  }
}

}  // namespace sdx::ops
