// The products of ggml_bytes_simd.h over a set of vector operations O; included once per instruction set, inside its region of
// compiler options. O has: Int, Float; kLanes, kVectors (of a panel's columns), kRows; zero, load, broadcast (4 bytes), set,
// load_float, mul, mul_add, to_float, store; kStarts, then Codes, broadcast_codes and dot; else together<bits>, product<bits>,
// add_narrow, widen and add.

template <class O, int M>
struct ByteTotals {
  typename O::Float of[M][O::kVectors];
};

// Products of one group of a panel, as integers, where sums begin with the rows' starts.
template <class O, bool kMin, int kGroup, int M>
SDX_BYTES_INLINE void byte_group_from_starts(const std::uint8_t* codes, const std::int8_t* x, const std::int32_t* starts,
                                             std::int64_t x_step, std::int64_t start_step,
                                             typename O::Int (&sum)[M][O::kVectors]) {
  using Int = typename O::Int;
  constexpr int V = O::kVectors;
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
    const Int start = kMin ? O::zero() : O::broadcast(starts + i * start_step);
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sum[i][v] = start;
  }
#pragma GCC unroll 8
  for (int q = 0; q < kGroup / 4; ++q) {
    typename O::Codes c[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) c[v] = O::load(codes + (q * V + v) * O::kLanes * 4);
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      const typename O::Codes e = O::broadcast_codes(x + i * x_step + 4 * q);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[i][v] = O::dot(sum[i][v], c[v], e);
    }
  }
}

enum class BytePairs { first, next, widened };

// A word of a panel's columns times one of M rows, as int16: the first in `sum`, or added to it, or widened before it is.
template <class O, int kBits, BytePairs kHow, int M>
SDX_BYTES_INLINE void byte_word_in_pairs(const std::uint8_t* codes, const std::int8_t* x, std::int64_t x_step,
                                         typename O::Int (&sum)[M][O::kVectors]) {
  using Int = typename O::Int;
  constexpr int V = O::kVectors;
  Int c[V];
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) c[v] = O::load(codes + v * O::kLanes * 4);
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
    const Int e = O::broadcast(x + i * x_step);
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const Int p = O::template product<kBits>(c[v], e);
      if constexpr (kHow == BytePairs::first) sum[i][v] = p;
      if constexpr (kHow == BytePairs::next) sum[i][v] = O::add_narrow(sum[i][v], p);
      if constexpr (kHow == BytePairs::widened) sum[i][v] = O::add(sum[i][v], O::widen(p));
    }
  }
}

// The same where pairs of products are int16, of which some may be added before they are widened.
template <class O, int kBits, bool kMin, int kGroup, int M>
SDX_BYTES_INLINE void byte_group_in_pairs(const std::uint8_t* codes, const std::int8_t* x, const std::int32_t* starts,
                                          std::int64_t x_step, std::int64_t start_step, typename O::Int (&sum)[M][O::kVectors]) {
  using Int = typename O::Int;
  constexpr int V = O::kVectors, kAll = kGroup / 4, kMost = O::template together<kBits>(),
                kTogether = kMost < kAll ? kMost : kAll;
  constexpr std::int64_t kWord = V * O::kLanes * 4;
  constexpr bool kWhole = kTogether == kAll;
  if constexpr (!kWhole) {
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      const Int start = kMin || kBits == 8 ? O::zero() : O::broadcast(starts + i * start_step);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[i][v] = start;
    }
  }
#pragma GCC unroll 8
  for (int first = 0; first < kAll; first += kTogether, codes += kTogether * kWord, x += 4 * kTogether) {
    if constexpr (kTogether == 1) {
      byte_word_in_pairs<O, kBits, BytePairs::widened, M>(codes, x, x_step, sum);
      continue;
    }
    Int narrow[M][V];
    byte_word_in_pairs<O, kBits, BytePairs::first, M>(codes, x, x_step, narrow);
#pragma GCC unroll 8
    for (int q = 1; q < kTogether; ++q)
      byte_word_in_pairs<O, kBits, BytePairs::next, M>(codes + q * kWord, x + 4 * q, x_step, narrow);
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[i][v] = kWhole ? O::widen(narrow[i][v]) : O::add(sum[i][v], O::widen(narrow[i][v]));
    }
  }
  if constexpr (kMin || !kWhole) return;
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
    const Int start = O::broadcast(starts + i * start_step);
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sum[i][v] = O::add(sum[i][v], start);
  }
}

template <class O, int kBits, int kGroup, bool kMin, int M>
void byte_tile_of(const BytePanel& panel, const ByteRows& rows, float* out) {
  using Float = typename O::Float;
  constexpr int V = O::kVectors, kPerBlock = 32 / kGroup, kColumns = V * O::kLanes;
  const std::int64_t x_step = rows.blocks * 32, group_step = rows.groups();
  ByteTotals<O, M> total;
  for (int i = 0; i < M; ++i) {
    for (int v = 0; v < V; ++v) total.of[i][v] = O::set(0.0F);
  }
  const std::uint8_t* codes = panel.codes;
  const std::int8_t* x = rows.codes;
  for (std::int64_t b = 0; b < panel.blocks; ++b) {
    for (int part = 0; part < kPerBlock; ++part, codes += kGroup * kColumns, x += kGroup) {
      const std::int64_t group = b * kPerBlock + part;
      typename O::Int sum[M][V];
      if constexpr (O::kStarts) {
        byte_group_from_starts<O, kMin, kGroup, M>(codes, x, rows.starts + group, x_step, group_step, sum);
      } else {
        byte_group_in_pairs<O, kBits, kMin, kGroup, M>(codes, x, rows.starts + group, x_step, group_step, sum);
      }
      const float* scales = panel.scales + group * kColumns;
#pragma GCC unroll 8
      for (int i = 0; i < M; ++i) {
        const Float scale = O::set(rows.scales[i * rows.blocks + b]);
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) {
          Float& t = total.of[i][v];
          t = O::mul_add(O::mul(O::to_float(sum[i][v]), scale), O::load_float(scales + v * O::kLanes), t);
        }
        if constexpr (kMin) {
          const Float of_group = O::set(rows.sums[i * group_step + group]);
#pragma GCC unroll 4
          for (int v = 0; v < V; ++v) {
            Float& t = total.of[i][v];
            t = O::mul_add(O::load_float(panel.minimums + group * kColumns + v * O::kLanes), of_group, t);
          }
        }
      }
    }
  }
  for (int i = 0; i < M; ++i) {
    for (int v = 0; v < V; ++v) O::store(total.of[i][v], out + i * kColumns + v * O::kLanes);
  }
}

// Where sums begin with starts, the number of bits does not matter.
template <class O, int M>
void byte_tile_rows(const ByteCodes& f, const BytePanel& panel, const ByteRows& rows, float* out) {
  if (f.group == 16)
    return f.minimum ? byte_tile_of<O, 6, 16, true, M>(panel, rows, out) : byte_tile_of<O, 6, 16, false, M>(panel, rows, out);
  if constexpr (!O::kStarts) {
    if (f.bits == 5)
      return f.minimum ? byte_tile_of<O, 5, 32, true, M>(panel, rows, out) : byte_tile_of<O, 5, 32, false, M>(panel, rows, out);
    if (f.bits == 8) return byte_tile_of<O, 8, 32, false, M>(panel, rows, out);
  }
  f.minimum ? byte_tile_of<O, 4, 32, true, M>(panel, rows, out) : byte_tile_of<O, 4, 32, false, M>(panel, rows, out);
}

template <class O>
void byte_tile(const ByteCodes& f, const BytePanel& panel, const ByteRows& rows, std::int64_t m, float* out) {
  switch (m) {
    case 1: return byte_tile_rows<O, 1>(f, panel, rows, out);
    case 2: return byte_tile_rows<O, 2>(f, panel, rows, out);
    case 3: return byte_tile_rows<O, 3>(f, panel, rows, out);
    case 4: return byte_tile_rows<O, 4>(f, panel, rows, out);
    default:
      if constexpr (O::kRows == 8) byte_tile_rows<O, 8>(f, panel, rows, out);
  }
}
