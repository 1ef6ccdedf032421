// Operators of the engine that programs' kernels call themselves. Each is a session over one node; there is one for each set of
// types and ranks that it is called with.

#include <map>
#include <mutex>

#include "base/thread_pool.h"
#include "dropin/custom/attribute.h"
#include "dropin/custom/operators.h"
#include "dropin/status.h"
#include "dropin/table.h"
#include "ops/infer.h"
#include "session/open.h"

namespace sdx::dropin {

struct OrtOp {
  Node node;  // without inputs and outputs
  int input_count = 0, output_count = 0;

  // Element type and rank by input, {undefined, 0} where one is left out; and whose threads it computes on.
  using Key = std::pair<std::vector<std::pair<DataType, std::size_t>>, ThreadPool*>;
  std::mutex mutex;
  std::map<Key, std::unique_ptr<OrtSession>> sessions;
};

namespace {

std::string value_name(const char* kind, std::size_t i) { return kind + std::to_string(i); }

Model model_of(const OrtOp& op, const OrtOp::Key& key) {
  Model model;
  model.ir_version = 10;
  model.opsets = {{op.node.domain, op.node.version}};
  model.graph.name = op.node.op_type;
  Node node = op.node;
  for (std::size_t i = 0; i < key.first.size(); ++i) {
    const auto [type, rank] = key.first[i];
    const bool given = type != DataType::undefined;
    node.inputs.push_back(given ? model.graph.add_input(value_name("i", i), Type::tensor(type, SymShape(rank, Dim::unknown())))
                                : kNoValue);
  }
  for (int i = 0; i < op.output_count; ++i) {
    node.outputs.push_back(model.graph.add_value(value_name("o", static_cast<std::size_t>(i))));
    model.graph.add_output(node.outputs.back());
  }
  model.graph.add_node(std::move(node));
  return model;
}

OrtSession& session_for(OrtOp& op, const OrtOp::Key& key) {
  const std::lock_guard lock(op.mutex);
  std::unique_ptr<OrtSession>& session = op.sessions[key];
  if (session != nullptr) return *session;
  session::InternalOptions internal;
  internal.pool = std::shared_ptr<ThreadPool>(std::shared_ptr<void>(), key.second);  // the caller's session holds it
  SessionOptions options;
  options.providers = {"cpu"};
  session = std::make_unique<OrtSession>(session::open(model_of(op, key), options, internal));
  return *session;
}

// Throws the engine's Error where there is no such operator, or an attribute cannot be.
void check_node(const OrtOp& op) {
  Graph graph;
  Node node = op.node;
  for (std::size_t i = 0; i < static_cast<std::size_t>(op.input_count); ++i) {
    node.inputs.push_back(graph.add_input(value_name("i", i), Type{}));
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(op.output_count); ++i) {
    node.outputs.push_back(graph.add_value(value_name("o", i)));
  }
  graph.add_node(std::move(node));
  ops::infer_in_place(graph);
}

OrtStatus* create(const OrtKernelInfo* info, const char* name, const char* domain, int version, const char* const* type_names,
                  const ElementType* types, int type_count, const OrtOpAttr* const* attributes, int attribute_count,
                  int input_count, int output_count, OrtOp** out) noexcept {
  return guarded([&] {
    require(out, "ort_op") = nullptr;
    require(info, "info");
    if (input_count < 0 || output_count < 1 || type_count < 0 || attribute_count < 0) {
      fail_ort(ORT_INVALID_ARGUMENT, "CreateOp: a count is out of range");
    }
    auto made = std::make_unique<OrtOp>();
    made->node.op_type = &require(name, "op_name");
    made->node.domain = &require(domain, "domain");
    if (made->node.domain == "ai.onnx") made->node.domain.clear();
    made->node.version = version;
    made->node.name = "standalone_" + made->node.op_type;
    made->input_count = input_count;
    made->output_count = output_count;
    if (type_count > 0) require(type_names, "type_constraint_names"), require(types, "type_constraint_values");
    if (attribute_count > 0) require(attributes, "attr_values");
    for (int i = 0; i < attribute_count; ++i) {
      const OrtOpAttr& a = require(attributes[i], "an attribute");
      made->node.attributes.set(a.name, a.value);
    }
    check_node(*made);
    *out = made.release();
  });
}

OrtStatus* invoke(const OrtKernelContext* context, const OrtOp* op, const OrtValue* const* inputs, int input_count,
                  OrtValue* const* outputs, int output_count) noexcept {
  return guarded([&] {
    require(context, "context");
    auto& called = const_cast<OrtOp&>(require(op, "ort_op"));
    if (input_count < 0 || input_count > called.input_count || output_count < 1 || output_count > called.output_count) {
      fail_ort(ORT_INVALID_ARGUMENT, "InvokeOp: " + called.node.op_type + " was made for " + std::to_string(called.input_count) +
                                         " inputs and " + std::to_string(called.output_count) + " outputs");
    }
    if (input_count > 0) require(inputs, "input_values");
    require(outputs, "output_values");
    OrtOp::Key key{{}, &current_pool()};
    std::vector<std::string> texts;
    std::vector<const OrtValue*> given;
    for (int i = 0; i < input_count; ++i) {
      const bool there = inputs[i] != nullptr && inputs[i]->value.is_tensor();
      if (inputs[i] != nullptr && !there) fail_ort(ORT_NOT_IMPLEMENTED, "InvokeOp takes tensors alone");
      key.first.emplace_back(there ? inputs[i]->value.tensor().dtype() : DataType::undefined,
                             there ? inputs[i]->value.tensor().rank() : 0);
      if (!there) continue;
      texts.push_back(value_name("i", static_cast<std::size_t>(i)));
      given.push_back(inputs[i]);
    }
    std::vector<std::string> output_texts;
    for (int i = 0; i < output_count; ++i) {
      require(outputs[i], "an output");
      output_texts.push_back(value_name("o", static_cast<std::size_t>(i)));
    }
    std::vector<const char*> input_names, output_names;
    for (const std::string& text : texts) input_names.push_back(text.c_str());
    for (const std::string& text : output_texts) output_names.push_back(text.c_str());
    std::vector<OrtValue*> results(outputs, outputs + output_count);
    run_session(session_for(called, key), nullptr, input_names.data(), given.data(), given.size(), output_names.data(),
                output_names.size(), results.data());
  });
}

void release(OrtOp* op) noexcept { delete op; }

}  // namespace

void fill_standalone(Table& table) {
  table.set(Slot::CreateOp, &create);
  table.set(Slot::InvokeOp, &invoke);
  table.set(Slot::ReleaseOp, &release);
}

}  // namespace sdx::dropin
