#pragma once
// Programs by the key of the traces that they compute.

#include <memory>

#include "array/trace.h"
#include "plan/program.h"
#include "session/graphs/donate.h"

namespace sdx::array::detail {

struct Compiled {
  std::vector<std::uint64_t> key;
  std::unique_ptr<plan::Program> program;
  std::size_t weight = 0;                         // what it takes of the cache
  std::vector<session::Donation> donations;       // leaves that may become results
  std::vector<std::shared_ptr<const void>> held;  // what the key knows by address stays there
};

// The program of a trace, compiled now if none is known. Thread-safe. Keeps the programs that were used last, up to a number of
// operations in all. Throws Error for an operation that cannot be compiled.
std::shared_ptr<const Compiled> program_for(const Trace& trace);

}  // namespace sdx::array::detail
