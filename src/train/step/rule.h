#pragma once
// The rule of an optimiser as numbers for the kernels, and the place of its states.

#include <filesystem>
#include <vector>

#include <sdx/train/checkpoint.hpp>
#include <sdx/train/optimizer.hpp>

#include "kernels/cpu/optimizer/update.h"

namespace sdx::train {

// Throws Error(invalid_argument) for numbers that make no sense.
void check_options(const OptimizerOptions& options);

// The number of states that it keeps for each parameter: "momentum0" and "momentum1".
std::size_t moments_of(const OptimizerOptions& options);

// The rule for update number `step`, from 1.
cpu::UpdateRule rule_for(const OptimizerOptions& options, float rate, std::int64_t step);

// Throws Error(invalid_model | not_implemented) where the file holds no optimiser that is known.
OptimizerOptions read_optimizer_model(const std::filesystem::path& path);

inline constexpr const char* kGroup = "group0";
inline constexpr const char* kMoments[] = {"momentum0", "momentum1"};

// The state's part of the optimiser, with moments for these parameters (numbers in the state), zero where there are none yet.
// Throws Error(invalid_argument) where one has another type or shape than its parameter.
OptimizerState& prepare_moments(CheckpointState& state, const std::vector<std::size_t>& parameters,
                                const OptimizerOptions& options);

// The parameter with its moments; its gradient lies at `gradient`.
cpu::UpdateSlice slice_of(Parameter& parameter, OptimizerState& group, const OptimizerOptions& options, float* gradient);

}  // namespace sdx::train
