#include "dropin/custom/operators.h"

#include <algorithm>

#include "base/error.h"
#include "dropin/custom/operators_impl.h"
#include "dropin/status.h"

namespace sdx::dropin {
namespace {

ops::TypeSet types_of(const std::vector<Signature>& overloads, bool input, std::size_t i) {
  ops::TypeSet types = 0;
  for (const Signature& s : overloads) {
    const ElementType type = (input ? s.inputs : s.outputs)[i].type;
    const DataType ours = type_of_element(type);
    if (type == ELEMENT_UNDEFINED || ours == DataType::undefined) return ops::types::any_tensor;
    types |= ops::bit(ours);
  }
  return types;
}

// Homogeneity is checked where the message can be ONNX Runtime's, not by type variables.
std::vector<ops::Formal> formals_of(const std::vector<Signature>& overloads, bool input) {
  const std::vector<Argument>& arguments = input ? overloads[0].inputs : overloads[0].outputs;
  std::vector<ops::Formal> formals;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    ops::Formal f;
    f.name = (input ? "Input" : "Output") + std::to_string(i);
    f.types = types_of(overloads, input, i);
    f.arity = static_cast<ops::Arity>(std::clamp<int>(arguments[i].kind, INPUT_OUTPUT_REQUIRED, INPUT_OUTPUT_VARIADIC));
    formals.push_back(std::move(f));
  }
  return formals;
}

void refuse_to_run(ops::OpContext& c) { c.fail("operator {} has no kernel", c.node().op_type); }

std::shared_ptr<const ops::CustomOp> make_operator(const std::string& domain, std::vector<Signature> overloads,
                                                   std::shared_ptr<const KernelHost> host, const std::string& library) {
  for (const Signature& s : overloads) check_overload(overloads[0], s);
  ops::OpDef def(domain, overloads[0].name, std::max(overloads[0].since, 1));
  def.inputs = formals_of(overloads, true);
  def.outputs = formals_of(overloads, false);
  def.deterministic = false;  // programs do not say; so nothing is computed ahead of a run or shared
  def.infer = infer_program_operator;
  def.run = refuse_to_run;
  auto op = std::make_shared<ProgramOperator>(ProgramOperator{{std::move(def), {}, library, nullptr}, {}, {}});
  op->make = make_program_kernel;
  std::erase_if(overloads, [](const Signature& s) { return !s.runs_on_cpu; });
  op->overloads = std::move(overloads);
  op->host = std::move(host);
  return op;
}

}  // namespace

std::vector<std::shared_ptr<const ops::CustomOp>> make_operators(const std::vector<OrtCustomOpDomain*>& domains,
                                                                 const std::shared_ptr<const KernelHost>& host,
                                                                 const std::string& library) {
  std::vector<std::shared_ptr<const ops::CustomOp>> all;
  for (const OrtCustomOpDomain* domain : domains) {
    std::vector<std::vector<Signature>> by_name;
    for (const OrtCustomOp* op : domain->ops) {
      Signature s = read_signature(op);
      const auto same = [&](const std::vector<Signature>& list) { return list[0].name == s.name; };
      auto it = std::find_if(by_name.begin(), by_name.end(), same);
      if (it == by_name.end()) it = by_name.emplace(by_name.end());
      it->push_back(std::move(s));
    }
    const std::string name = domain->name == "ai.onnx" ? "" : domain->name;
    for (auto& overloads : by_name) all.push_back(make_operator(name, std::move(overloads), host, library));
  }
  return all;
}

session::CustomOps operators_of(const OrtSessionOptions& options, const OrtLogger& logger) {
  if (options.domains.empty()) return {};
  return make_operators(options.domains, std::make_shared<const KernelHost>(KernelHost{logger, options.config, options.kept}));
}

const Signature* choose(const ProgramOperator& op, const std::vector<DataType>& types, int version) {
  // As in ONNX Runtime, an operator that ends at a version serves later ones until another begins.
  int newest = 0;
  for (const Signature& s : op.overloads) {
    if (s.since <= version) newest = std::max(newest, s.since);
  }
  for (const Signature& s : op.overloads) {
    if (version < s.since || s.until < newest) continue;
    bool fits = true;
    for (std::size_t i = 0; i < types.size() && fits && !s.inputs.empty(); ++i) {
      const Argument& a = formal(s.inputs, i);
      const bool any = a.type == ELEMENT_UNDEFINED || types[i] == DataType::undefined;
      fits = any || type_of_element(a.type) == types[i];
    }
    if (fits) return &s;
  }
  return nullptr;
}

namespace {

ErrorCode our_code(OrtErrorCode code) {
  switch (code) {
    case ORT_INVALID_ARGUMENT: return ErrorCode::invalid_argument;
    case ORT_NOT_IMPLEMENTED: return ErrorCode::not_implemented;
    case ORT_INVALID_GRAPH: return ErrorCode::invalid_model;
    case ORT_NO_SUCHFILE: return ErrorCode::io;
    case ORT_RUNTIME_EXCEPTION: return ErrorCode::runtime_failure;
    default: return ErrorCode::internal;  // which programs see as ORT_FAIL
  }
}

}  // namespace

void throw_status(OrtStatus* status, const std::string& what) {
  if (status == nullptr) return;
  Error error(our_code(status_code(status)), what + status_message(status));
  release_status(status);
  throw error;
}

}  // namespace sdx::dropin
