#pragma once
// Choosing a provider by the clock: the candidates run a model on real inputs, and the decision is remembered.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sdx/session.hpp>

#include "cache/decision.h"
#include "session/compiled_chain.h"

namespace sdx::session {

// The chain from which measuring chooses: the selected providers, and if the choice was left to us, also those that automatic
// selection leaves out because our own engine uses the same CPU (`openvino`, `ort:cpu`).
Selection with_more_candidates(Selection selection, const SessionOptions& options);

// The part of a chain that begins with its provider number `first`: later ones take the nodes that a candidate leaves.
Selection chain_from(const Selection& selection, std::size_t first);

// The file that keeps the decision about this model with these options, candidates, versions and machine.
std::filesystem::path decision_file(const SessionContext& context, const Selection& selection);
// nullopt: there is none, it cannot be read, or its choice is not in the chain.
std::optional<cache::Decision> decision_for(const std::filesystem::path& file, const Selection& selection);

// Compiles each candidate, runs it on the request's inputs in turn with the others, and chooses the one with the least median
// time among those whose results agree with the last one's, `cpu`: within 1 % of the largest magnitude of each output of floats,
// equal in all else. A model whose results differ from run to run is only held to types and shapes. A candidate that fails is
// out, with the reason. `winner` receives the chain of the chosen one. Throws Error: what `cpu` throws, cancelled,
// deadline_exceeded.
cache::Decision measure_providers(const std::shared_ptr<SessionContext>& context, const Selection& selection,
                                  const Request& request, std::shared_ptr<const CompiledChain>& winner);

// "ort:cpu 1.2 ms, cpu 2.3 ms, openvino: differs from cpu …"
std::string summary(const cache::Decision& decision);

}  // namespace sdx::session
