#pragma once
// Per-target inner loop of max_pool_places.h; internal to this folder.

#include <cstdint>

namespace sdx::cpu {

// One row of results: windows within the plane, all values finite.
struct PlacesRow {
  const float* plane = nullptr;
  std::int64_t at = 0;                    // element of the plane at which the first window begins
  const std::int64_t* rows = nullptr;     // of the window: offsets of its rows from its beginning
  std::int64_t count = 0;                 // of rows
  std::int64_t kernel = 1, dilation = 1;  // of columns
  std::int64_t stride = 1;                // 1 or 2
  std::int64_t columns = 0;               // of results
  std::int64_t base = 0;                  // added to places
  float* y = nullptr;
  std::int64_t* places = nullptr;
};

struct PlacesKernels {
  void (*row)(const PlacesRow& r);
};

const PlacesKernels& places_kernels();

}  // namespace sdx::cpu
