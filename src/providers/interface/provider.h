#pragma once
// The interface of everything that can run nodes, and the policy that chooses among providers.

#include <atomic>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sdx/provider.hpp>

#include "base/tools_api.h"
#include "graph/graph.h"
#include "passes/pass.h"
#include "providers/interface/kernel.h"

namespace sdx {

namespace cache {
class PackStore;
}  // namespace cache

// A provider's answer about one node.
struct Claim {
  bool taken = false;
  std::string reason;  // why not
};

// The settings that a session passes to one provider.
struct ProviderSettings {
  // Options of this provider alone, by their vendor's names, in the user's order.
  std::vector<std::pair<std::string, std::string>> options;
  std::string ort_library;       // where the user says that ONNX Runtime's library is; empty: searched for
  std::string openvino_library;  // the same for OpenVINO's C library
  std::filesystem::path cache;   // folder for what this provider compiles; empty: nothing is kept
  int threads = 0;               // 0: the provider's own default
  bool optimize = true;
  bool strict = false;   // nothing may run elsewhere than on the provider's own device
  bool profile = false;  // record the times of inner nodes
  // While this is set, NaN that a region's kernel makes of inputs without any is a failure (plan/guarded_kernel.h); null: never.
  std::shared_ptr<const std::atomic<bool>> reject_nan;
};

// The thoroughness of probe(). `quick` stops at the first missing part, and looks at hardware before it loads a library:
// automatic selection uses it at every start. `full` finds out everything.
enum class Effort { quick, full };

// The file or bytes that a graph was read from, unchanged.
struct ModelSource {
  std::filesystem::path path;         // empty: from memory
  std::shared_ptr<const void> owner;  // of the bytes
  std::span<const std::byte> bytes;   // empty: from a file
  std::filesystem::path folder;       // of external data, for bytes
  bool empty() const { return path.empty() && bytes.empty(); }
};

// Options for lowering nodes.
struct LowerOptions {
  // If a node has several kernels, measure them (or use earlier measurements) instead of trusting the cost model.
  bool tune = false;
  cache::TunedChoices* tuned = nullptr;  // of earlier measurements; may be null
  cache::PackStore* packs = nullptr;     // of this compilation: where packed weights come from; null: each is made anew
};

class Provider;

// A part of a model that becomes one kernel. All that it points to need only live as long as compile() runs.
struct Region {
  // A graph of its own: its inputs are the values that come from outside, its outputs those that are needed outside; constants
  // are inside. Names are those of the model.
  const Graph* graph = nullptr;
  // Opsets, functions, metadata; its graph is not the region's.
  const Model* model = nullptr;
  // Set where the region is the whole model and nothing was changed: inputs and outputs agree by name with the file's.
  const ModelSource* source = nullptr;
  // For each output of the graph, whether only other regions of this provider read it, so that it may stay in the provider's
  // memory. Empty: the host reads them all.
  std::vector<bool> stays;
  // Providers of the same family that come next in the chain, with their settings: this one may pass nodes on to them internally.
  std::vector<std::pair<const Provider*, ProviderSettings>> followers;
};

// A provider's answer to a region: a kernel whose inputs and outputs are those of the region's graph, in order, or else the nodes
// that made it impossible. The caller tries again without them.
struct RegionResult {
  std::unique_ptr<Kernel> kernel;
  std::vector<std::pair<NodeId, std::string>> refused;  // node of the region's graph, and why; never empty without a kernel
};

// Stateless and thread-safe; one instance per process.
class Provider {
 public:
  virtual ~Provider() = default;
  virtual std::string_view name() const = 0;
  // Checks the machine: never throws; the reason says exactly what is missing.
  virtual ProviderInfo probe(const ProviderSettings& settings, Effort effort) const = 0;
  // Throws Error(invalid_argument) for an unknown option (with the closest match) or a value that cannot be.
  virtual void check_options(const ProviderSettings& settings) const;
  // One answer per node of the graph, whose types are inferred.
  virtual std::vector<Claim> claim(const Graph& graph, const ProviderSettings& settings) const = 0;

  // Providers come in two kinds. Those that compile node by node choose a kernel for a claimed node in lower(); it throws Error
  // when the node cannot be compiled after all.
  virtual Step lower(const Graph& graph, NodeId node, const LowerOptions& options) const;

  // Rewritings of the graph for kernels of this provider alone: run after all others, where it runs everything that no region
  // takes.
  virtual std::span<const Pass> passes() const { return {}; }

  // Providers that compile regions get as many claimed nodes at once as fit together: see form_regions() in plan/regions.h.
  virtual bool compiles_regions() const { return false; }
  // Regions are then formed of the graph as the passes for every provider leave it, fused operators of `sdx` and com.microsoft
  // included, instead of the file's. Vendors' libraries know only the latter, so all such providers of a chain have to want it.
  virtual bool wants_optimized() const { return false; }
  // Throws Error(provider_unavailable) when the provider cannot compile at all (no device, no library, out of its memory).
  virtual RegionResult compile(const Region& region, const ProviderSettings& settings) const;
  // Providers of one family ("ort") can share a region: see Region::followers. Empty: none.
  virtual std::string_view family() const { return {}; }
};

// A provider that users may name, whether or not this build can use it.
struct ProviderName {
  std::string name;      // "cuda"
  std::string ort_name;  // "CUDAExecutionProvider"
  std::string hardware;
  std::vector<std::string> aliases;  // further accepted spellings, lower case
  std::string platforms;             // "Linux, Windows"
};

// True where the environment variable SDX_TEST_PROVIDER is set: then there is a provider "fault" (providers/fault).
bool test_provider_enabled();
// All known names, in the order of the documentation.
SDX_TOOLS_API std::span<const ProviderName> provider_names();
// Short name for any accepted spelling (case ignored; "ort:NAME" is kept as such with a canonical NAME). Throws
// Error(invalid_argument) with the closest match and the list.
SDX_TOOLS_API std::string canonical_provider(std::string_view text);
// The chain that a list of names and intents ("auto", "gpu", "npu", …) stands for, on this platform, without duplicates.
// Ends with "cpu" unless `strict`.
SDX_TOOLS_API std::vector<std::string> provider_chain(std::span<const std::string> asked, bool strict);

}  // namespace sdx
