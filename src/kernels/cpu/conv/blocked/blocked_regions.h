#pragma once
// Rectangles of outputs whose windows have the same taps inside the input; internal to this folder.

#include <cstdint>
#include <vector>

#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/conv/conv_windows.h"

namespace sdx::cpu {

struct Region {
  Span rows, columns;          // of outputs
  Span row_taps, column_taps;  // of the window; both empty: all lie in the padding

  std::int64_t taps() const { return row_taps.size() * column_taps.size(); }
};

// The regions of a convolution, if computing only the taps inside takes clearly less time than reading zeros around the input;
// else none. Windows with a wide dilation over a small image, as in spatial pyramids, lie mostly in the padding.
std::vector<Region> regions_worth_it(const ConvShape& s);

// Number of products for each pair of channels, in whole register tiles: those of the regions if they are worth it, else those of
// all taps.
double direct_products(const ConvShape& s);

}  // namespace sdx::cpu
