#pragma once
// Finds results of a program that may use the memory of an input that is not needed afterwards.

#include <vector>

#include "base/tools_api.h"
#include "plan/program.h"

namespace sdx::session {

struct Donation {
  std::uint32_t output, input;  // numbers within Program::graph().outputs() and inputs()
};

// For smaller results, newly allocated memory is as good.
inline constexpr std::size_t kLeastDonated = std::size_t{64} << 10;

// Returns all possible donations; each input and each output takes part in at most one. For graphs with constant shapes.
SDX_TOOLS_API std::vector<Donation> find_donations(const plan::Program& program);

}  // namespace sdx::session
