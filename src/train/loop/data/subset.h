#pragma once
// One data set as two.

#include <memory>
#include <utility>

#include <sdx/train/fit.hpp>

namespace sdx::train::loop {

// A share of the samples, chosen by `seed`, for validation; at least one for each of the two. Both may be asked at once. The
// second one is asked for epoch -1: nothing is changed at random there.
std::pair<std::unique_ptr<Dataset>, std::unique_ptr<Dataset>> split(std::unique_ptr<Dataset> all, double share,
                                                                    std::uint64_t seed);

}  // namespace sdx::train::loop
