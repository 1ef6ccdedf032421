#pragma once
// Operators in ONNX Runtime's structures, as operators of our engine.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dropin/objects.h"
#include "graph/graph.h"
#include "ops/context.h"
#include "ops/custom.h"
#include "session/custom_ops.h"

namespace sdx::dropin {

// State that the kernels of one session share.
struct KernelHost {
  OrtLogger logger;
  std::map<std::string, std::string, std::less<>> config;  // the session's entries
  std::vector<std::shared_ptr<const void>> kept;           // libraries whose code the operators are
};

// Information about a kernel's node, for queries while the kernel is made, and later from a copy.
struct OrtKernelInfo {
  struct Argument {
    std::string name;  // empty: left out
    std::string type;  // in our spelling; "unknown" where nothing is known
    std::optional<OrtValue> constant;
  };
  std::string node_name, op_type, domain;
  int since_version = 1;
  Attributes attributes;
  std::vector<Argument> inputs, outputs;
  std::shared_ptr<const KernelHost> host;
};

// One run of one node. Values are made at once, so that kernels may ask for inputs from several threads.
struct OrtKernelContext {
  OrtKernelContext(ops::OpContext& context, const OrtKernelInfo& kernel_info, std::vector<DataType> types_of_outputs);

  ops::OpContext& op;
  const OrtKernelInfo& info;
  std::vector<DataType> output_types;            // by output; undefined: the kernel was not told
  std::vector<std::optional<OrtValue>> inputs;   // nothing: left out
  std::vector<std::optional<OrtValue>> outputs;  // those that were made
};

// The operators of the domains, with `host` for their kernels; `library` says in reports whose they are. Throws OrtError for
// operators that contradict themselves or an overload of the same name.
std::vector<std::shared_ptr<const ops::CustomOp>> make_operators(const std::vector<OrtCustomOpDomain*>& domains,
                                                                 const std::shared_ptr<const KernelHost>& host,
                                                                 const std::string& library = "program");

// The custom operators of a session with these options, besides those in the engine's options.
session::CustomOps operators_of(const OrtSessionOptions& options, const OrtLogger& logger);

// A status that a program's function returned, as an Error of ours with `what` before its message; frees it. Nothing for NULL.
void throw_status(OrtStatus* status, const std::string& what);

}  // namespace sdx::dropin
