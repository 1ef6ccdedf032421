// Two backends on the same inputs, and the search for the node at which they part.
//
// Making inner values outputs keeps nodes from being merged, which can make a difference vanish or appear; therefore a few values
// at a time are looked at, and the verdict on the outputs comes from the model as it is.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include <sdx/compare.hpp>
#include <sdx/runner.hpp>

#include "base/error.h"
#include "base/suggest.h"
#include "base/system/temporary.h"
#include "compare/probe.h"
#include "compare/values.h"
#include "inputs/input_plan.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "providers/interface/provider.h"

namespace sdx::compare {
namespace {

namespace fs = std::filesystem;

// A folder for the models with other outputs; gone with this object.
class Scratch {
 public:
  Scratch() : path_(make_temporary_folder("sdx-compare-")) {}
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  fs::path file(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

// Weights beside the model, so that no model is too large to be written.
void write_probe_model(const Model& model, const fs::path& path) {
  WriteOptions options;
  options.external_above = std::size_t{1} << 20;
  write_model(model, path, options);
}

class Search {
 public:
  Search(const CompareOptions& options, ProbeSide a, ProbeSide b, OutputsComparison& out)
      : o_(options), a_(std::move(a)), b_(std::move(b)), out_(out), model_(read_model(options.model)) {
    precision_ = precision_of(model_.graph);
  }

  void compare_model();
  void find_first();

 private:
  ValueDifference difference(const std::string& name, const Value& a, const Value& b, std::size_t output_index) const;
  std::vector<ValueDifference> probe(const fs::path& path, const NamedValues& inputs, const std::vector<std::string>& names);
  std::vector<ValueDifference> probe_inner(const std::vector<ValueId>& values);
  std::vector<NodeId> leading_to(ValueId target) const;
  bool differs(NodeId node, const std::vector<ValueDifference>& seen, const std::vector<ValueId>& values) const;
  std::vector<ValueId> outputs_of(NodeId id) const;
  void describe(NodeId id);
  void alone(NodeId id, NodeDifference& d);
  void make_inputs();

  const CompareOptions& o_;
  ProbeSide a_, b_;
  OutputsComparison& out_;
  Model model_;
  Precision precision_;
  NamedValues inputs_;
  Scratch scratch_;
  Report report_a_, report_b_;  // of the model as it is
  std::vector<Value> last_a_;   // the first side's values of the last probe
};

void Search::make_inputs() {
  const std::vector<ValueSpec> specs = model_inputs(o_.model, o_.session);
  const inputs::InputPlan plan = inputs::plan_inputs(specs, {o_.inputs, o_.shapes, o_.session.dimensions, 0});
  out_.notes.insert(out_.notes.end(), plan.notes.begin(), plan.notes.end());
  const inputs::IndexBounds bounds = inputs::bounds_of(o_.model, o_.session, specs, plan.given, plan.shapes);
  inputs_ = inputs::with_made_up(specs, plan.given, plan.shapes, o_.seed, bounds);
}

ValueDifference Search::difference(const std::string& name, const Value& a, const Value& b, std::size_t output_index) const {
  const DataType dtype = a.is_tensor()                                                         ? a.tensor().dtype()
                         : a.is_map()                                                          ? a.map().values.dtype()
                         : a.is_sequence() && a.sequence().element_type != DataType::undefined ? a.sequence().element_type
                                                                                               : DataType::float32;
  Tolerance t = default_tolerance(precision_, output_index, dtype);
  // Neither side is exact: two good approximations of Sigmoid are 1e-7 apart where the result is nearly 0.
  if (t.absolute > 0 && dtype == DataType::float32) t.absolute = std::max(t.absolute, 5e-7);
  if (o_.atol || o_.rtol) t = {0, o_.atol.value_or(0), o_.rtol.value_or(0), 0, 0, "--atol, --rtol"};
  const Comparison c = compare_values(a, b, t);
  return {name, a.type_string(), c.pass, c.max_abs, c.max_rel, c.differing, t.reason, c.why};
}

std::vector<ValueDifference> Search::probe(const fs::path& path, const NamedValues& inputs,
                                           const std::vector<std::string>& names) {
  ++out_.probes;
  Probe a = run_probe(a_, path, inputs, names);
  Probe b = run_probe(b_, path, inputs, names);
  std::vector<ValueDifference> out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& declared = model_.graph.output_names();
    const auto at = static_cast<std::size_t>(std::find(declared.begin(), declared.end(), names[i]) - declared.begin());
    out.push_back(difference(names[i], a.values[i], b.values[i], at));
  }
  last_a_ = std::move(a.values);
  if (out_.probes == 1) {
    report_a_ = std::move(a.report);
    report_b_ = std::move(b.report);
  }
  return out;
}

void Search::compare_model() {
  make_inputs();
  if (o_.progress) o_.progress("comparing outputs");
  out_.outputs = probe(o_.model, inputs_, model_.graph.output_names());
  out_.providers_a = join(report_a_.providers, ",");
  out_.providers_b = join(report_b_.providers, ",");
  for (const auto* report : {&report_a_, &report_b_}) {
    for (const std::string& f : report->fallbacks) out_.notes.push_back("FALLBACK: " + f);
  }
  for (std::size_t i = 0; i < 2; ++i) {
    const ProbeSide& side = i == 0 ? a_ : b_;
    const Report& report = i == 0 ? report_a_ : report_b_;
    const std::vector<std::string> chain = provider_chain(side.session.providers, true);
    std::set<std::string> foreign;
    for (const std::string& p : report.providers) {
      if (std::find(chain.begin(), chain.end(), p) == chain.end()) foreign.insert(p);
    }
    if (foreign.empty() || std::find(chain.begin(), chain.end(), "auto") != chain.end()) continue;
    const auto nodes = std::count_if(report.nodes.begin(), report.nodes.end(),
                                     [&](const NodeReport& n) { return foreign.contains(n.provider); });
    out_.notes.push_back(fmt::format("{}: {} of {} nodes ran on {}", side.text, nodes, report.nodes.size(),
                                     join(std::vector<std::string>(foreign.begin(), foreign.end()))));
  }
}

// The nodes that the value is computed from, in order of execution.
std::vector<NodeId> Search::leading_to(ValueId target) const {
  const Graph& g = model_.graph;
  std::vector<bool> wanted(g.nodes().size(), false);
  std::vector<ValueId> open{target};
  while (!open.empty()) {
    const NodeId id = g.value(open.back()).producer;
    open.pop_back();
    if (id == kNoNode || wanted[id]) continue;
    wanted[id] = true;
    const auto follow = [&](const std::vector<ValueId>& list) {
      std::copy_if(list.begin(), list.end(), std::back_inserter(open), [](ValueId v) { return v != kNoValue; });
    };
    follow(g.node(id).inputs);
    for (const Subgraph& s : g.node(id).subgraphs) follow(s.captures);
  }
  std::vector<NodeId> out;
  for (NodeId id = 0; id < wanted.size(); ++id) {
    if (wanted[id]) out.push_back(id);
  }
  return out;
}

std::vector<ValueId> Search::outputs_of(NodeId id) const {
  std::vector<ValueId> out;
  for (const ValueId v : model_.graph.node(id).outputs) {
    if (v != kNoValue) out.push_back(v);
  }
  return out;
}

std::vector<ValueDifference> Search::probe_inner(const std::vector<ValueId>& values) {
  Model model = model_;
  std::vector<std::string> names;
  const auto& declared = model.graph.outputs();
  for (const ValueId v : values) {
    const auto at = static_cast<std::size_t>(std::find(declared.begin(), declared.end(), v) - declared.begin());
    if (at < declared.size()) {
      names.push_back(model.graph.output_names()[at]);
      continue;
    }
    model.graph.add_output(v);
    names.push_back(model.graph.output_names().back());
  }
  const fs::path path = scratch_.file(fmt::format("probe-{}.onnx", out_.probes));
  write_probe_model(model, path);
  std::vector<ValueDifference> out = probe(path, inputs_, names);
  std::error_code ignored;
  fs::remove(path, ignored);
  fs::remove(path.string() + ".data", ignored);
  return out;
}

bool Search::differs(NodeId node, const std::vector<ValueDifference>& seen, const std::vector<ValueId>& values) const {
  for (const ValueId v : outputs_of(node)) {
    const auto at = static_cast<std::size_t>(std::find(values.begin(), values.end(), v) - values.begin());
    if (at < seen.size() && !seen[at].pass) return true;
  }
  return false;
}

void Search::find_first() {
  const auto bad = std::find_if(out_.outputs.begin(), out_.outputs.end(), [](const auto& d) { return !d.pass; });
  if (bad == out_.outputs.end()) return;
  const auto index = static_cast<std::size_t>(bad - out_.outputs.begin());
  const std::vector<NodeId> nodes = leading_to(model_.graph.outputs()[index]);
  out_.nodes = static_cast<std::int64_t>(nodes.size());
  if (nodes.empty()) return;
  // The nodes before `low` agree; the node at `high` differs. Several probes run per step, because opening both sessions costs
  // most.
  constexpr std::ptrdiff_t kAtATime = 8;
  std::ptrdiff_t low = -1;
  auto high = static_cast<std::ptrdiff_t>(nodes.size()) - 1;
  while (high - low > 1) {
    if (o_.progress) o_.progress(fmt::format("{} nodes left", high - low));
    const std::ptrdiff_t count = std::min(kAtATime, high - low - 1);
    std::vector<std::ptrdiff_t> picked;
    std::vector<ValueId> values;
    for (std::ptrdiff_t i = 1; i <= count; ++i) {
      picked.push_back(low + (high - low) * i / (count + 1));
      const auto outputs = outputs_of(nodes[static_cast<std::size_t>(picked.back())]);
      values.insert(values.end(), outputs.begin(), outputs.end());
    }
    const auto seen = probe_inner(values);
    for (const std::ptrdiff_t p : picked) {
      if (p <= low || p >= high) continue;
      if (differs(nodes[static_cast<std::size_t>(p)], seen, values)) {
        high = p;
      } else {
        low = p;
      }
    }
  }
  describe(nodes[static_cast<std::size_t>(high)]);
}

std::string kernel_of(const Report& report, const Node& node) {
  for (const NodeReport& n : report.nodes) {
    if (!node.name.empty() && n.name == node.name) return n.provider + ": " + n.kernel;
  }
  return "";
}

void Search::describe(NodeId id) {
  const Graph& g = model_.graph;
  const Node& node = g.node(id);
  NodeDifference d;
  d.name = node.name.empty() ? g.describe(id) : node.name;
  d.op = node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
  d.kernel_a = kernel_of(report_a_, node);
  d.kernel_b = kernel_of(report_b_, node);
  std::vector<ValueId> values = outputs_of(id);
  const std::size_t outputs = values.size();
  for (const ValueId v : node.inputs) {
    const bool inner = v != kNoValue && g.value(v).producer != kNoNode;
    if (inner && std::find(values.begin(), values.end(), v) == values.end()) values.push_back(v);
  }
  const auto seen = probe_inner(values);
  d.outputs.assign(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(outputs));
  d.inputs.assign(seen.begin() + static_cast<std::ptrdiff_t>(outputs), seen.end());
  if (std::all_of(d.outputs.begin(), d.outputs.end(), [](const auto& v) { return v.pass; })) {
    out_.notes.emplace_back(
        "with its inner values as outputs, the model agrees up to and including this node, so the difference comes from "
        "optimising the nodes around it; compare with '+no-optimize' after one of the backends");
  }
  std::vector<Value> given(last_a_.begin() + static_cast<std::ptrdiff_t>(outputs), last_a_.end());
  NamedValues inputs;
  for (std::size_t i = outputs; i < values.size(); ++i) inputs.add(g.value(values[i]).name, given[i - outputs]);
  const NamedValues kept = std::exchange(inputs_, std::move(inputs));
  for (const NamedValue& v : kept) {
    if (inputs_.find(v.name) == nullptr) inputs_.add(v.name, v.value);
  }
  try {
    alone(id, d);
  } catch (const Error& e) {
    d.alone_error = e.message();
  }
  out_.first = std::move(d);
}

// A model of this one node, fed with the first side's values.
void Search::alone(NodeId id, NodeDifference& d) {
  const Graph& g = model_.graph;
  Node node = g.node(id);
  if (!node.subgraphs.empty()) fail(ErrorCode::not_implemented, "it has subgraphs, so it cannot be run alone");
  Model model = model_;
  model.graph = Graph();
  model.graph.name = "alone";
  NamedValues inputs;
  std::vector<std::pair<ValueId, ValueId>> known;
  const auto import = [&](ValueId v) {
    if (v == kNoValue) return v;
    for (const auto& [from, to] : known) {
      if (from == v) return to;
    }
    const ValueInfo& info = g.value(v);
    const Value* given = inputs_.find(info.name);
    ValueId to = kNoValue;
    if (given == nullptr && info.constant) {
      to = model.graph.add_constant(info.name, *info.constant);
    } else if (given != nullptr && given->is_tensor()) {
      Type type = Type::tensor(given->tensor().dtype());
      type.shape.emplace();
      for (const std::int64_t extent : given->tensor().shape()) type.shape->emplace_back(extent);
      to = model.graph.add_input(info.name, type);
      inputs.add(info.name, *given);
    } else {
      fail(ErrorCode::not_implemented, "its input '{}' is not a tensor, so it cannot be run alone", info.name);
    }
    known.emplace_back(v, to);
    return to;
  };
  for (ValueId& v : node.inputs) v = import(v);
  std::vector<std::string> names;
  std::vector<ValueId> outputs;
  for (ValueId& v : node.outputs) {
    if (v == kNoValue) continue;
    names.push_back(g.value(v).name);
    v = model.graph.add_value(g.value(v).name, g.value(v).type);
    outputs.push_back(v);
  }
  model.graph.add_node(std::move(node));
  for (const ValueId v : outputs) model.graph.add_output(v);
  const fs::path path = scratch_.file("alone.onnx");
  write_probe_model(model, path);
  d.alone = probe(path, inputs, names);
}

std::vector<ProbeSide> sides_of(const CompareOptions& o) {
  if (o.backends.size() != 2) {
    fail(ErrorCode::invalid_argument, "two backends are compared, received {}", o.backends.size());
  }
  for (const auto& t : {o.atol, o.rtol}) {
    if (t && !(*t >= 0)) fail(ErrorCode::invalid_argument, "a tolerance must not be negative, received {}", *t);
  }
  std::vector<ProbeSide> sides;
  for (const std::string& text : o.backends) {
    sides.push_back(parse_side(text, o.session));
    if (o.resolve) o.resolve(sides.back().session);
    sides.back().session.strict = !o.allow_fallback;
    provider_chain(sides.back().session.providers, false);  // throws for unknown names
  }
  return sides;
}

}  // namespace

}  // namespace sdx::compare

namespace sdx {

bool OutputsComparison::pass() const noexcept {
  return std::all_of(outputs.begin(), outputs.end(), [](const ValueDifference& d) { return d.pass; });
}

void check_backends(const CompareOptions& options) { compare::sides_of(options); }

OutputsComparison compare_outputs(const CompareOptions& options) {
  const std::vector<compare::ProbeSide> sides = compare::sides_of(options);
  OutputsComparison out;
  out.model = options.model.string();
  out.backend_a = options.backends[0];
  out.backend_b = options.backends[1];
  compare::Search search(options, sides[0], sides[1], out);
  search.compare_model();
  if (options.bisect && !out.pass()) search.find_first();
  return out;
}

}  // namespace sdx
