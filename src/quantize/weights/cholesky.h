#pragma once
// The one decomposition that GPTQ needs.

#include <cstdint>
#include <optional>
#include <vector>

namespace sdx::quantize {

// Returns U, upper triangular with a positive diagonal; its transpose times U is the inverse of the symmetric `matrix` [size,
// size]. Row-major, float32, zeros below the diagonal. Returns nothing if the matrix is not positive definite. One Cholesky
// decomposition from the last row to the first and one triangular inverse, both in float64 on the current pool's threads: the
// inverse itself is never formed.
std::optional<std::vector<float>> inverse_factor(std::vector<double> matrix, std::int64_t size);

}  // namespace sdx::quantize
