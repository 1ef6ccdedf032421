#include "gradients/built.h"

#include <algorithm>
#include <span>
#include <utility>

#include "onnx/writer.h"
#include "passes/expand_gradients.h"
#include "session/pipeline.h"
#include "support/session.h"
#include "tensor/element.h"

namespace sdx::gradient_tests {
namespace {

bool is_float(DataType t) { return t == DataType::float64 || t == DataType::float32; }

ValueId add(Model& m, const char* op, std::vector<ValueId> inputs, Attributes attributes = {}) {
  Node n;
  n.op_type = op;
  n.version = m.opsets.at("");
  n.inputs = std::move(inputs);
  n.attributes = std::move(attributes);
  n.outputs = {m.graph.add_value("made")};
  const ValueId out = n.outputs[0];
  m.graph.add_node(std::move(n));
  return out;
}

// The sum of the values, weighted.
ValueId weighted_sum(Model& m, const std::vector<ValueId>& values, const std::vector<Tensor>& like, std::mt19937_64& random) {
  ValueId total = kNoValue;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Tensor numbers = random_tensor(like[i].shape(), 0.5, 2, random);
    const ValueId weights = m.graph.add_constant("weights", converted(numbers, like[i].dtype()));
    Attributes keep;
    keep.set("keepdims", std::int64_t{0});
    const ValueId sum = add(m, "ReduceSum", {add(m, "Mul", {values[i], weights})}, keep);
    total = total == kNoValue ? sum : add(m, "Add", {total, sum});
  }
  return total;
}

// Appends the gradient of `y` by the inputs that vary; all inputs determine it.
std::vector<ValueId> add_gradient(Model& m, ValueId y, const Point& p) {
  std::vector<std::string> rest;
  std::vector<ValueId> inputs;
  for (const std::string& name : p.varying) inputs.push_back(*m.graph.find(name));
  for (const NamedValue& v : p.values) {
    if (std::find(p.varying.begin(), p.varying.end(), v.name) != p.varying.end()) continue;
    rest.push_back(v.name);
    inputs.push_back(*m.graph.find(v.name));
  }
  Node n;
  n.op_type = "Gradient";
  n.domain = "ai.onnx.preview.training";
  n.version = 1;
  n.inputs = std::move(inputs);
  n.attributes.set("xs", p.varying);
  if (!rest.empty()) n.attributes.set("zs", rest);
  n.attributes.set("y", m.graph.value(y).name);
  for (const std::string& name : p.varying) {
    n.outputs.push_back(m.graph.add_value("d_" + name, p.values.tensor(name).dtype() == DataType::float64
                                                           ? Type::tensor(DataType::float64)
                                                           : Type::tensor(DataType::float32)));
  }
  std::vector<ValueId> out = n.outputs;
  m.graph.add_node(std::move(n));
  m.opsets["ai.onnx.preview.training"] = 1;
  return out;
}

std::vector<ValueId> append_fused(Model& m, ValueId y, const Point& p) {
  session::check_and_infer(m.graph);
  std::vector<ValueId> xs;
  for (const std::string& name : p.varying) xs.push_back(*m.graph.find(name));
  GradientOptions options;
  options.fused = true;
  std::vector<ValueId> gradients = append_gradients(m.graph, y, xs, options);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i] == kNoValue) gradients[i] = add(m, "Sub", {xs[i], xs[i]});
  }
  return gradients;
}

void change_extents(Graph& graph, Extents extents) {
  if (extents == Extents::declared) return;
  for (const ValueId v : graph.inputs()) {
    ValueInfo& info = graph.value(v);
    if (info.declared.shape) {
      for (Dim& d : *info.declared.shape) {
        if (extents == Extents::unknown) d = Dim::unknown();
        if (extents == Extents::symbols && d.is_const() && d.value() > 1) d = Dim::symbol("e" + std::to_string(d.value()));
      }
    }
    info.type = info.declared;
  }
}

}  // namespace

Tensor random_tensor(const Shape& shape, double low, double high, std::mt19937_64& random) {
  Tensor t(DataType::float64, shape);
  std::uniform_real_distribution<double> distribution(low, high);
  for (double& v : t.mutable_values<double>()) v = distribution(random);
  return t;
}

Tensor converted(const Tensor& t, DataType elem) {
  if (t.dtype() == elem) return t;
  Tensor out(elem, t.shape());
  for (std::int64_t i = 0; i < t.size(); ++i) set_element(out, i, element_as_double(t, i));
  return out;
}

Session open(const Model& model) { return testing::open(model); }

Built build(Model m, const Point& p, const Options& options, std::mt19937_64& random) {
  std::vector<ValueId> outputs;
  std::vector<Tensor> like;
  const NamedValues plain = open(m).run(p.values);
  for (std::size_t i = 0; i < m.graph.outputs().size(); ++i) {
    if (!is_float(plain[i].value.tensor().dtype())) continue;
    outputs.push_back(m.graph.outputs()[i]);
    like.push_back(plain[i].value.tensor());
  }
  change_extents(m.graph, options.extents);
  while (!m.graph.outputs().empty()) m.graph.remove_output(0);
  ValueId target = weighted_sum(m, outputs, like, random);
  std::vector<ValueId> gradients = options.fused ? append_fused(m, target, p) : add_gradient(m, target, p);
  if (options.second) {
    std::vector<Tensor> shapes;
    for (const std::string& name : p.varying) shapes.push_back(p.values.tensor(name));
    target = weighted_sum(m, gradients, shapes, random);
    gradients = add_gradient(m, target, p);
  }
  m.graph.add_output(target);
  std::vector<std::string> names;
  for (const ValueId g : gradients) {
    m.graph.add_output(g);
    names.push_back(m.graph.value(g).name);
  }
  return {open(m), m.graph.value(target).name, std::move(names)};
}

double target_at(const Built& built, const NamedValues& values) {
  RunOptions options;
  options.outputs = {built.target};
  return element_as_double(built.session.run(values, options)[0].value.tensor(), 0);
}

}  // namespace sdx::gradient_tests
