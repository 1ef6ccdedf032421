#pragma once
// Threefry-2x32 with 20 rounds: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). A word of the sequence
// depends on the key and on its own number alone, so that any part can be made on any thread.

#include <cstdint>
#include <utility>

namespace sdx::array::detail {

struct Key {
  std::uint32_t first = 0, second = 0;
};

std::pair<std::uint32_t, std::uint32_t> threefry(Key key, std::uint32_t x, std::uint32_t y);

// Words [0, count) of a key's sequence, as JAX and MLX order them: word i and word i + ceil(count / 2) are the two halves of one
// block, whose counter is this pair. All run on the caller's thread.
// Blocks [begin, end): their halves at low[0...] and high[0...], whose numbers are begin + i and begin + i + half.
struct Blocks {
  Key key;
  std::int64_t begin = 0, end = 0, half = 0;
};
void words(const Blocks& blocks, std::uint32_t* low, std::uint32_t* high);

// How words become numbers. float: word / 2^32 rounded to float, at most `most`, then times `range`, plus `low`.
struct Spread {
  float most = 1, range = 1, low = 0;
};
void uniform_floats(const std::uint32_t* words, std::int64_t count, const Spread& spread, float* out);
// In place: the inverse error function, in single precision within 4 units in the last place (Giles 2011), times `scale`.
void inverse_erf_floats(float* values, std::int64_t count, float scale);

// All of these for one instruction set.
struct RandomTable {
  void (*fill)(const Blocks&, std::uint32_t*, std::uint32_t*);
  void (*spread)(const std::uint32_t*, std::int64_t, const Spread&, float*);
  void (*inverse_erf)(float*, std::int64_t, float);
  std::pair<std::uint32_t, std::uint32_t> (*one)(Key, std::uint32_t, std::uint32_t);
};

}  // namespace sdx::array::detail
