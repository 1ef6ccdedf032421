#include "providers/interface/provider.h"

#include "base/error.h"

namespace sdx {

void Provider::check_options(const ProviderSettings& settings) const {
  if (settings.options.empty()) return;
  fail(ErrorCode::invalid_argument, "provider '{}' has no options, received '{}'", name(), settings.options.front().first);
}

Step Provider::lower(const Graph& graph, NodeId node, const LowerOptions&) const {
  fail(ErrorCode::internal, "provider '{}' does not compile single nodes: {}", name(), graph.describe(node));
}

RegionResult Provider::compile(const Region&, const ProviderSettings&) const {
  fail(ErrorCode::internal, "provider '{}' compiles node by node", name());
}

}  // namespace sdx
