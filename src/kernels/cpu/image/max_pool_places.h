#pragma once
// Maximum pooling that says where the maxima lie, and its gradient, over NC[D][H]W float tensors. Contract as in pool.h.

#include <cstdint>

#include "kernels/cpu/conv/conv_shape.h"

namespace sdx::cpu {

// Geometry as in max_pool_f32(). places[i]: the element of x that y[i] is, counted through the whole tensor; of equal ones the
// first, of several NaN the last; -1 where a window holds nothing.
void max_pool_places_f32(const ConvShape& shape, const float* x, float* y, std::int64_t* places);

// dx[places[i]] += dy[i] over `planes` planes; dx is [planes, in_plane], dy and places [planes, out_plane]. A place of -1 is left
// out. Returns the first other place that lies outside of dx, or -1; dx is then incomplete.
std::int64_t add_at_places_f32(std::int64_t planes, std::int64_t in_plane, std::int64_t out_plane, const float* dy,
                               const std::int64_t* places, float* dx);

}  // namespace sdx::cpu
