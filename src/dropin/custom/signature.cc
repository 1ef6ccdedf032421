#include "dropin/custom/signature.h"

#include <cstring>

#include "dropin/status.h"

namespace sdx::dropin {
namespace {

// Versions of the structure that introduced fields: in earlier versions these must not be read.
constexpr std::uint32_t kCharacteristics = 8, kVariadic = 14, kStatuses = 16, kInference = 17;
constexpr std::size_t kMostArguments = 4096;

std::vector<Argument> arguments_of(const OrtCustomOp& op, bool input) {
  const std::size_t count = input ? op.GetInputTypeCount(&op) : op.GetOutputTypeCount(&op);
  if (count > kMostArguments) {
    fail_ort(ORT_INVALID_ARGUMENT,
             "custom op '" + std::string(op.GetName(&op)) + "' has " + std::to_string(count) + " arguments");
  }
  std::vector<Argument> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    Argument& a = out[i];
    a.type = input ? op.GetInputType(&op, i) : op.GetOutputType(&op, i);
    if (op.version < kCharacteristics) continue;
    a.kind = input ? op.GetInputCharacteristic(&op, i) : op.GetOutputCharacteristic(&op, i);
    if (a.kind != INPUT_OUTPUT_VARIADIC) continue;
    if (op.version < kVariadic) {
      a.kind = INPUT_OUTPUT_REQUIRED;
      continue;
    }
    if (i + 1 != count) {
      fail_ort(ORT_FAIL,
               std::string("Only the last ") + (input ? "input" : "output") + " to a custom op may be marked variadic.");
    }
    a.least = input ? op.GetVariadicInputMinArity(&op) : op.GetVariadicOutputMinArity(&op);
    a.homogeneous = (input ? op.GetVariadicInputHomogeneity(&op) : op.GetVariadicOutputHomogeneity(&op)) != 0;
  }
  return out;
}

const char* ordinal(std::size_t place) { return place == 1 ? "st" : place == 2 ? "nd" : place == 3 ? "rd" : "th"; }

void check_arguments(const std::vector<Argument>& first, const std::vector<Argument>& other, const char* what) {
  if (first.size() != other.size()) fail_ort(ORT_FAIL, std::string(what) + " count does not match");
  const auto mismatch = [&](std::size_t i, const std::string& expected) {
    fail_ort(ORT_FAIL,
             "custom op schemas mismatch, expecting " + std::to_string(i + 1) + ordinal(i + 1) + " " + what + " to " + expected);
  };
  static constexpr const char* kKinds[] = {"be of single type", "be of optional type", "be of variadic type"};
  for (std::size_t i = 0; i < first.size(); ++i) {
    const Argument& a = first[i];
    const Argument& b = other[i];
    if (a.kind != b.kind) mismatch(i, kKinds[b.kind <= INPUT_OUTPUT_VARIADIC ? b.kind : 0]);
    if (a.kind != INPUT_OUTPUT_VARIADIC) continue;
    if (a.homogeneous != b.homogeneous) mismatch(i, "keep same homogeneity");
    if (a.least != b.least) mismatch(i, "keep same arity");
  }
}

}  // namespace

Signature read_signature(const OrtCustomOp* op) {
  const OrtCustomOp& o = require(op, "op");
  if (o.GetName == nullptr || o.GetInputTypeCount == nullptr || o.GetOutputTypeCount == nullptr || o.KernelDestroy == nullptr) {
    fail_ort(ORT_INVALID_ARGUMENT, "a custom op lacks functions that every one must have");
  }
  Signature s;
  s.op = op;
  s.name = &require(o.GetName(op), "the name of a custom op");
  if (o.version == 0 || o.version > kNewestApi) {
    fail_ort(ORT_FAIL, "Unsupported version '" + std::to_string(o.version) + "' in custom op '" + s.name + "'");
  }
  s.inputs = arguments_of(o, true);
  s.outputs = arguments_of(o, false);
  if (o.version >= kInference) {
    if (o.GetStartVersion != nullptr) s.since = o.GetStartVersion(op);
    if (o.GetEndVersion != nullptr) s.until = o.GetEndVersion(op);
    s.infers = o.InferOutputShapeFn != nullptr;
  }
  const bool creates = (o.version >= kStatuses && o.CreateKernelV2 != nullptr) || o.CreateKernel != nullptr;
  const bool computes = (o.version >= kStatuses && o.KernelComputeV2 != nullptr) || o.KernelCompute != nullptr;
  if (!creates || !computes) fail_ort(ORT_INVALID_ARGUMENT, "custom op '" + s.name + "' cannot be created or computed");
  const char* const provider = o.GetExecutionProviderType != nullptr ? o.GetExecutionProviderType(op) : nullptr;
  s.runs_on_cpu = provider == nullptr || *provider == '\0' || std::strcmp(provider, "CPUExecutionProvider") == 0;
  return s;
}

void check_overload(const Signature& first, const Signature& other) {
  check_arguments(first.inputs, other.inputs, "input");
  check_arguments(first.outputs, other.outputs, "output");
}

}  // namespace sdx::dropin
