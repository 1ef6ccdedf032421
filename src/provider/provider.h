#pragma once
// The interface of everything that can run nodes, and the policy that chooses among providers.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sdx/provider.hpp>

#include "graph/graph.h"
#include "provider/kernel.h"

namespace sdx {

// A provider's answer about one node.
struct Claim {
  bool taken = false;
  std::string reason;  // why not
};

// Stateless and thread-safe; one instance per process.
class Provider {
 public:
  virtual ~Provider() = default;
  virtual std::string_view name() const = 0;
  // Looks at the machine: cheap, never throws; the reason says exactly what is missing.
  virtual ProviderInfo probe() const = 0;
  // One answer per node of the graph, whose types are inferred.
  virtual std::vector<Claim> claim(const Graph& graph) const = 0;
  // Chooses a kernel for a claimed node. Throws Error when the node cannot be compiled after all.
  virtual Step lower(const Graph& graph, NodeId node) const = 0;
};

// A provider that users may name, whether or not this build can use it.
struct ProviderName {
  std::string name;      // "cuda"
  std::string ort_name;  // "CUDAExecutionProvider"
  std::string hardware;
  std::vector<std::string> aliases;  // further accepted spellings, lower case
  std::string platforms;             // "Linux, Windows"
};

// All known names, in the order of the documentation.
std::span<const ProviderName> provider_names();
// Short name for any accepted spelling (case ignored; "ort:NAME" is kept as such with a canonical NAME). Throws
// Error(invalid_argument) with the closest match and the list.
std::string canonical_provider(std::string_view text);
// The chain that a list of names and intents ("auto", "gpu", "npu", …) stands for, on this platform, without duplicates.
// Ends with "cpu" unless `strict`.
std::vector<std::string> provider_chain(std::span<const std::string> asked, bool strict);

}  // namespace sdx
