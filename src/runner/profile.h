#pragma once
// Where the time goes, operator by operator.

#include <filesystem>
#include <vector>

#include <sdx/runner.hpp>

namespace sdx {

// Opens the model with a profiler, runs it a few times, and sums up by operator and kernel, most expensive first. Writes a Chrome
// trace unless `trace` is empty. Throws as Session does.
std::vector<OperatorTime> profile_operators(const std::filesystem::path& model, SessionOptions options, const NamedValues& inputs,
                                            const std::filesystem::path& trace);

}  // namespace sdx
