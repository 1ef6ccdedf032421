#pragma once
// Compiling a chain within the time that SessionOptions::provider_timeout leaves a provider.

#include <functional>
#include <memory>

#include "session/compiled_chain.h"

namespace sdx::session {

// The provider that took too long.
struct LateProvider {
  int index = -1;            // in the selection; -1: none did
  bool left_behind = false;  // its compiler still works, on a thread of its own
};

// Compiles on the caller's thread if there is no time limit, or only our own engine. Otherwise on another thread, which is left
// behind if a provider takes longer than the limit: this call then throws Error(runtime_failure) and fills in `late`. When that
// compiler has returned, `over` is called on its thread, with the provider's index and the chain or null. While a compiler of a
// provider is left behind, that provider gets no further model in this process: one that hangs costs one thread, however many
// sessions are opened. Throws what compiling throws.
std::shared_ptr<const CompiledChain> compile_in_time(
    const std::shared_ptr<SessionContext>& context, const Selection& selection, LateProvider& late,
    std::function<void(int, std::shared_ptr<const CompiledChain>)> over = nullptr);

}  // namespace sdx::session
