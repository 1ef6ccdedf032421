#pragma once
// Maximum pooling that also returns where the maxima are, and its gradient, over NC[D][H]W float tensors. Contract as in pool.h.

#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"

namespace sdx::cpu {

// Geometry as in max_pool_f32(). places[i]: which element of the whole tensor x is y[i]; of equal ones the first, of several NaN
// the last; -1 for an empty window.
void max_pool_places_f32(const ConvShape& shape, const float* x, float* y, std::int64_t* places);

// dx[places[i]] += dy[i] over `planes` planes; dx is [planes, in_plane], dy and places [planes, out_plane]. Places of -1 are
// skipped. Returns the first other place outside dx, which leaves dx incomplete; else -1.
std::int64_t add_at_places_f32(std::int64_t planes, std::int64_t in_plane, std::int64_t out_plane, const float* dy,
                               const std::int64_t* places, float* dx);

}  // namespace sdx::cpu
