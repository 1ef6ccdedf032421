#include "onnx/functions.h"

#include <algorithm>
#include <memory>
#include <tuple>

#include "base/error.h"
#include "onnx/attributes.h"
#include "onnx/graph_reader.h"
#include "onnx/opsets.h"
#include "tensor/wire.h"

namespace sdx {
namespace {

using wire::bytes;

constexpr std::size_t kMaxCallDepth = 64;
constexpr std::size_t kMaxNodes = 500'000;
constexpr std::size_t kMaxRepeatedBytes = std::size_t{64} << 20;  // of bodies, each one's first use apart
constexpr std::size_t kMaxPrefix = 64;

std::string full_name(const Function& f) {
  return (f.domain.empty() ? "" : f.domain + ".") + f.name + (f.overload.empty() ? "" : ":" + f.overload);
}

void add_name(std::string_view name, std::string_view what, std::vector<std::string>& names) {
  if (name.empty()) fail(ErrorCode::invalid_model, "an {} has no name", what);
  names.emplace_back(name);
}

void check_unique(std::vector<std::string> names, std::string_view what) {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) fail(ErrorCode::invalid_model, "{} '{}' is given twice", what, *twice);
}

void read_default(std::string_view message, Function& f, PbSource& source) {
  const AttributeMessage a = scan_attribute(message);
  f.defaults.emplace_back(std::string(a.name), attribute_value(a, source));
}

void read_fields(std::string_view message, Function& f, PbSource& source) {
  std::vector<std::string> warnings;  // said for the model's own imports already
  wire::Reader r = wire::open(message);
  while (r.next()) {
    switch (r.tag_and_type()) {
      case bytes(1): f.name = std::string(wire::text(r)); break;
      case bytes(4): add_name(wire::text(r), "input", f.inputs); break;
      case bytes(5): add_name(wire::text(r), "output", f.outputs); break;
      case bytes(6): add_name(wire::text(r), "attribute", f.attributes); break;
      case bytes(9): read_opset(wire::text(r), f.opsets, warnings); break;
      case bytes(10): f.domain = canonical_domain(wire::text(r)); break;
      case bytes(11): read_default(wire::text(r), f, source); break;
      case bytes(13): f.overload = std::string(wire::text(r)); break;
      default: r.skip();
    }
  }
}

std::vector<std::string_view> body_nodes(std::string_view function) {
  std::vector<std::string_view> nodes;
  wire::Reader r = wire::open(function);
  while (r.next()) {
    if (r.tag_and_type() == bytes(7)) {
      nodes.push_back(wire::text(r));
    } else {
      r.skip();
    }
  }
  return nodes;
}

class Inliner : public reading::CallExpander {
 public:
  Inliner(Model& model, ExternalData* external) : model_(model) {
    state_.source.external = external;
    state_.ir_version = model.ir_version;
    state_.opsets = &model.opsets;
    state_.warnings = &model.warnings;
    state_.expander = this;
    state_.nodes_left = kMaxNodes;
    for (const Function& f : model.functions) {
      table_.emplace(std::tie(f.domain, f.name, f.overload), Body{&f, nullptr, {}});
      state_.function_domains.insert(f.domain);
    }
  }

  void walk(Graph& graph, int depth);
  bool expand(reading::Scope& scope, const Node& call) override { return expand_in(scope.graph, call, scope.depth); }

 private:
  using Key = std::tuple<std::string_view, std::string_view, std::string_view>;
  struct Body {
    const Function* function = nullptr;
    std::shared_ptr<const std::string> bytes;  // made at the first use; tensors of the body view it
    std::vector<std::string_view> nodes;
  };

  Body* find(const Node& call) {
    const auto it = table_.find(Key(call.domain, call.op_type, call.overload));
    return it == table_.end() ? nullptr : &it->second;
  }
  bool expand_in(Graph& graph, const Node& call, int depth);
  void instantiate(Body& body, Graph& graph, const Node& call, int depth);
  void pass_through(reading::Scope& scope, const Node& call);

  Model& model_;
  reading::State state_;
  std::map<Key, Body> table_;
  std::vector<const Function*> active_;
  std::size_t bytes_left_ = kMaxRepeatedBytes;
};

bool Inliner::expand_in(Graph& graph, const Node& call, int depth) {
  Body* const body = find(call);
  if (body == nullptr) return false;
  const Function& f = *body->function;
  if (std::find(active_.begin(), active_.end(), &f) != active_.end()) {
    fail(ErrorCode::invalid_model, "function '{}' calls itself; functions may not be recursive", full_name(f));
  }
  if (active_.size() >= kMaxCallDepth) {
    fail(ErrorCode::invalid_model, "function calls are nested more than {} deep", kMaxCallDepth);
  }
  active_.push_back(&f);
  const PbSource outer = state_.source;
  try {
    instantiate(*body, graph, call, depth);
  } catch (Error& e) {
    e.add_context(fmt::format("in function '{}'", full_name(f)));
    throw;
  }
  state_.source.owner = outer.owner;
  active_.pop_back();
  return true;
}

void Inliner::instantiate(Body& body, Graph& graph, const Node& call, int depth) {
  const Function& f = *body.function;
  if (call.inputs.size() > f.inputs.size() || call.outputs.size() > f.outputs.size()) {
    fail(ErrorCode::invalid_model, "the function takes {} inputs and returns {} outputs; the call has {} and {}", f.inputs.size(),
         f.outputs.size(), call.inputs.size(), call.outputs.size());
  }
  if (body.bytes == nullptr) {
    body.bytes = std::make_shared<const std::string>(f.bytes);
    body.nodes = body_nodes(*body.bytes);
  } else if (f.bytes.size() > bytes_left_) {
    fail(ErrorCode::out_of_memory, "calling the model's functions again and again takes more than {} MiB of function bodies",
         kMaxRepeatedBytes >> 20);
  } else {
    bytes_left_ -= f.bytes.size();
  }
  state_.source.owner = body.bytes;
  reading::Instance instance;
  instance.function = &f;
  instance.call = &call;
  instance.prefix = (call.name.empty() ? f.name : call.name).substr(0, kMaxPrefix);
  reading::Scope scope(graph);
  scope.instance = &instance;
  scope.depth = depth;
  for (std::size_t i = 0; i < f.inputs.size(); ++i) {
    scope.names.emplace(f.inputs[i], i < call.inputs.size() ? call.inputs[i] : kNoValue);
  }
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    if (call.outputs[i] != kNoValue) instance.outputs.emplace(f.outputs[i], call.outputs[i]);
  }
  reading::read_nodes(state_, scope, body.nodes);
  pass_through(scope, call);
}

// A function may return one of its inputs, which takes a node of its own.
void Inliner::pass_through(reading::Scope& scope, const Node& call) {
  const Function& f = *scope.instance->function;
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    if (call.outputs[i] == kNoValue) continue;
    const auto it = scope.names.find(f.outputs[i]);
    if (it == scope.names.end() || it->second == kNoValue) {
      fail(ErrorCode::invalid_model, "output '{}' of the function is never produced", f.outputs[i]);
    }
    if (it->second == call.outputs[i]) continue;
    Node copy;
    copy.op_type = "Identity";
    const auto own = f.opsets.find("");
    const auto models = model_.opsets.find("");
    copy.version = own != f.opsets.end() ? own->second : (models != model_.opsets.end() ? models->second : 1);
    copy.inputs = {it->second};
    copy.outputs = {call.outputs[i]};
    scope.graph.add_node(std::move(copy));
  }
}

void Inliner::walk(Graph& graph, int depth) {
  if (depth > reading::kMaxGraphDepth) {
    fail(ErrorCode::invalid_model, "graphs are nested more than {} deep", reading::kMaxGraphDepth);
  }
  const auto count = static_cast<NodeId>(graph.nodes().size());
  bool changed = false;
  for (NodeId id = 0; id < count; ++id) {
    if (graph.node(id).removed) continue;
    try {
      // Subgraphs first: a call may hand its own graph attributes to the body.
      for (Subgraph& s : graph.node(id).subgraphs) walk(*s.graph, depth + 1);
      if (find(graph.node(id)) == nullptr) continue;
      const Node call = graph.node(id);
      const std::string described = graph.describe(id);
      graph.remove_node(id);
      try {
        expand_in(graph, call, depth);
      } catch (Error& e) {
        e.add_context("in " + described);
        throw;
      }
    } catch (const protozero::exception& e) {
      fail(ErrorCode::invalid_model, "a function's body is damaged: {}", wire::damage(e));
    }
    changed = true;
  }
  if (changed) graph.compact();
}

}  // namespace

Function read_function(std::string_view message, PbSource& source) {
  Function f;
  f.bytes = std::string(message);
  try {
    read_fields(message, f, source);
    check_opsets(f.opsets);
    if (f.name.empty()) fail(ErrorCode::invalid_model, "a function has no name");
    check_unique(f.inputs, "input");
    check_unique(f.outputs, "output");
    std::vector<std::string> attributes = f.attributes;
    for (const auto& [name, value] : f.defaults) attributes.push_back(name);
    check_unique(std::move(attributes), "attribute");
  } catch (Error& e) {
    e.add_context(fmt::format("in function '{}'", full_name(f)));
    throw;
  }
  return f;
}

void inline_functions(Model& model, ExternalData* external) {
  if (model.functions.empty()) return;
  try {
    Inliner(model, external).walk(model.graph, 0);
  } catch (Error& e) {
    if (!model.path.empty()) e.add_context(fmt::format("in model '{}'", model.path));
    throw;
  }
  model.functions.clear();
}

}  // namespace sdx
