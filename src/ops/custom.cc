#include "ops/custom.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "ops/custom_api.h"

namespace sdx::ops {
namespace {

// A library's SDX_INTERNAL is not a mistake of ours.
ErrorCode code_of(sdx_status status) {
  if (status <= SDX_OK || status >= SDX_INTERNAL) return ErrorCode::runtime_failure;
  return static_cast<ErrorCode>(status);
}

// Calls into a library; its errors and exceptions become an Error whose context names it.
template <class F>
void call_library(const std::string& who, F&& call) {
  take_custom_message();
  sdx_status status = SDX_OK;
  std::string message;
  try {
    status = call();
    if (status == SDX_OK) return;
    message = take_custom_message();
    if (message.empty()) message = fmt::format("failed with status {}", static_cast<int>(status));
  } catch (const std::exception& e) {
    status = SDX_RUNTIME_FAILURE;
    message = fmt::format("threw an exception: {}", e.what());
  } catch (...) {
    status = SDX_RUNTIME_FAILURE;
    message = "threw an exception of unknown type";
  }
  Error error(code_of(status), std::move(message));
  error.add_context("in " + who);
  throw error;
}

std::string who(const CustomOp& op, const char* callback) {
  return fmt::format("{} of operator '{}{}{}' from library '{}'", callback, op.def.domain, op.def.domain.empty() ? "" : ".",
                     op.def.name, op.library);
}

// Element types that follow from the definition alone.
void infer_types(InferContext& c, const OpDef& def) {
  for (std::size_t i = 0; i < c.num_outputs(); ++i) {
    const Formal& out = def.outputs[std::min(i, def.outputs.size() - 1)];
    DataType type = DataType::undefined;
    for (int t = 1; t < kDataTypeCount; ++t) {
      if (out.types == bit(static_cast<DataType>(t))) type = static_cast<DataType>(t);
    }
    for (std::size_t j = 0; j < c.num_inputs() && type == DataType::undefined && !out.type_var.empty(); ++j) {
      if (def.inputs[std::min(j, def.inputs.size() - 1)].type_var == out.type_var) type = c.dtype(j);
    }
    c.output(i, type);
  }
}

void infer_custom(InferContext& c) {
  const CustomOp& op = *c.node().custom;
  infer_types(c, op.def);
  if (op.functions.infer == nullptr) return;
  InferenceState state{c, AttributesState(c.node())};
  call_library(who(op, "infer"),
               [&] { return op.functions.infer(&custom_api(), opaque<sdx_op_inference>(state), op.functions.user_data); });
}

void run_custom(OpContext& c) { CustomKernel(c.node()).run(c); }

}  // namespace

CustomKernel::CustomKernel(const Node& node) : op_(node.custom) {
  if (op_->functions.create == nullptr) return;
  AttributesState attributes(node);
  call_library(who(*op_, "create"), [&] {
    return op_->functions.create(&custom_api(), opaque<const sdx_op_attributes>(attributes), op_->functions.user_data, &kernel_);
  });
}

CustomKernel::~CustomKernel() {
  if (op_->functions.create == nullptr || op_->functions.destroy == nullptr) return;
  try {
    op_->functions.destroy(kernel_, op_->functions.user_data);
  } catch (...) {  // nobody is left to be told
  }
}

void CustomKernel::run(OpContext& context) const {
  CallState state{context, op_->def, std::vector<bool>(context.num_outputs(), false)};
  call_library(who(*op_, "run"),
               [&] { return op_->functions.run(&custom_api(), opaque<sdx_op_call>(state), kernel_, op_->functions.user_data); });
  for (std::size_t i = 0; i < state.made.size(); ++i) {
    if (!state.made[i] && context.wants_output(i)) {
      Error error(ErrorCode::runtime_failure, fmt::format("output {} was not made", i));
      throw error.add_context("in " + who(*op_, "run"));
    }
  }
}

namespace {

// Every name that is read exists, and none is given twice.
void check_gradient(const GradientNodes& g, const GradientNames& names, const CustomOp& op) {
  std::set<std::string> known{""};
  for (const auto* list : {&names.inputs, &names.outputs, &names.of_outputs}) known.insert(list->begin(), list->end());
  const auto broken = [&](const std::string& message) {
    Error error(ErrorCode::runtime_failure, message);
    throw error.add_context("in " + who(op, "gradient"));
  };
  for (const GradientNode& n : g.nodes) {
    for (const std::string& in : n.inputs) {
      if (!known.contains(in)) broken(fmt::format("node {} reads '{}', which nothing computes", n.op_type, in));
    }
    for (const std::string& out : n.outputs) {
      if (!out.empty() && !known.insert(out).second) broken(fmt::format("'{}' is computed twice", out));
    }
  }
  for (std::size_t i = 0; i < g.of_inputs.size(); ++i) {
    if (!known.contains(g.of_inputs[i])) {
      broken(fmt::format("the gradient of input {} is '{}', which nothing computes", i, g.of_inputs[i]));
    }
  }
}

}  // namespace

GradientNodes custom_gradient(const Node& node, const GradientNames& names) {
  const CustomOp& op = *node.custom;
  if (op.functions.gradient == nullptr) {
    Error error(ErrorCode::not_implemented, "the operator has no gradient");
    throw error.add_context("in " + who(op, "gradient"));
  }
  GradientState state{names, AttributesState(node), {}};
  state.result.of_inputs.resize(names.inputs.size());
  call_library(who(op, "gradient"),
               [&] { return op.functions.gradient(&custom_api(), opaque<sdx_op_gradient>(state), op.functions.user_data); });
  check_gradient(state.result, names, op);
  return std::move(state.result);
}

std::vector<std::shared_ptr<const CustomOp>> register_custom(sdx_register_operators_fn function, const std::string& library,
                                                             const std::shared_ptr<void>& handle) {
  const std::string where = fmt::format("library '{}'", library);
  RegistryState state;
  call_library(where, [&] { return function(&custom_api(), opaque<sdx_op_registry>(state)); });
  const auto refuse = [&](const std::string& message) {
    Error error(ErrorCode::invalid_argument, message);
    throw error.add_context("in " + where);
  };
  if (state.defs.empty()) refuse("the library adds no operator");
  std::vector<std::shared_ptr<const CustomOp>> out;
  for (std::size_t i = 0; i < state.defs.size(); ++i) {
    OpDef& def = state.defs[i];
    const auto same = [&](const OpDef& d) { return d.domain == def.domain && d.name == def.name; };
    const std::string domain = def.domain.empty() ? "ai.onnx" : def.domain;
    if (std::any_of(table().all().begin(), table().all().end(), same)) {
      refuse(fmt::format("operator '{}' of domain '{}' is built in and cannot be replaced; give yours a domain of its own",
                         def.name, domain));
    }
    for (const auto& other : out) {
      if (same(other->def) && other->def.since == def.since) {
        refuse(fmt::format("operator '{}' of domain '{}' is added twice for version {}", def.name, domain, def.since));
      }
    }
    def.infer = infer_custom;
    def.run = run_custom;
    out.push_back(std::make_shared<const CustomOp>(CustomOp{std::move(def), state.functions[i], library, handle}));
  }
  return out;
}

}  // namespace sdx::ops
