#pragma once
// A region as a compiled model of OpenVINO.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "providers/interface/provider.h"
#include "providers/openvino/library.h"
#include "providers/openvino/options.h"

namespace sdx::openvino {

// Throws Error(not_implemented) with the library's message when it turns the model down; Error(provider_unavailable) when the
// device cannot be had; Error(invalid_argument) for its properties.
std::unique_ptr<Kernel> make_region_kernel(std::shared_ptr<const Library> library, const Region& region,
                                           const ProviderSettings& settings);

// The nodes that such a message is about, with the reason: it names nodes, values or operators. Empty when it speaks of none.
std::vector<std::pair<NodeId, std::string>> blamed_nodes(const Graph& graph, const std::string& message);

// Removes from such a message the places in OpenVINO's source and other lines without meaning for its users; returns one line.
std::string plain(const std::string& message);

}  // namespace sdx::openvino
