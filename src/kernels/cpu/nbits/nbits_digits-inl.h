// The products of nbits_digits.h over a set of vector operations O; included once per instruction set, inside its region of
// compiler options. O has: Int, Float; kLanes; kFewSums; load, broadcast (4 bytes); low_nibbles, high_nibbles, even_bytes,
// odd_bytes; and for codes of 4 bits start4, dot4, end4 (a part's exact sum of digits), for codes of 8 bits start8, dot8; zeros
// (bytes to int32); to_float, set, mul_add, mul, load_float, store.

template <class O, int D, int M, int V>
struct NBitsPart {
  typename O::Int sum[M][D][V];
};

// Prefetches 4 KB ahead: the stream is read once, and the hardware prefetcher stops at page boundaries.
SDX_NBITS_INLINE void nbits_prefetch(const std::uint32_t* at) { __builtin_prefetch(at + 1024); }

// The next word of V vectors of columns times M rows of digits.
template <class O, int kBits, int D, int M, int V>
SDX_NBITS_INLINE void nbits_word(const std::uint32_t* words, const std::byte* digits, std::int64_t row_bytes,
                                 NBitsPart<O, D, M, V>& p) {
  using Int = typename O::Int;
  nbits_prefetch(words);
  if constexpr (O::kLanes > 8) nbits_prefetch(words + 16);
  Int even[V], odd[V];
#pragma GCC unroll 2
  for (int v = 0; v < V; ++v) {
    const Int raw = O::load(words + v * O::kLanes);
    even[v] = kBits == 4 ? O::low_nibbles(raw) : O::even_bytes(raw);
    odd[v] = kBits == 4 ? O::high_nibbles(raw) : O::odd_bytes(raw);
  }
#pragma GCC unroll 4
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 3
    for (int d = 0; d < D; ++d) {
      const Int e = O::broadcast(digits + i * row_bytes + 8 * d);
      const Int o = O::broadcast(digits + i * row_bytes + 8 * d + 4);
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) {
        Int& s = p.sum[i][d][v];
        if constexpr (kBits == 4) {
          s = O::dot4(O::dot4(s, even[v], e), odd[v], o);
        } else {
          s = O::dot8(O::dot8(s, even[v], e), odd[v], o);
        }
      }
    }
  }
}

// One part of a block: V vectors of columns, M rows. zero: null, or per vector.
template <class O, int kBits, int D, int M, int V>
SDX_NBITS_INLINE void nbits_part(const std::uint32_t* words, std::int64_t nr, std::int64_t count, const std::byte* record,
                                 std::int64_t row_bytes, const typename O::Int* zero, NBitsPart<O, D, M, V>& p) {
#pragma GCC unroll 4
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 3
    for (int d = 0; d < D; ++d) {
      const typename O::Int c = O::broadcast(record + i * row_bytes + 8 + 4 * d);
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) {
        const typename O::Int* z = zero != nullptr ? zero + v : nullptr;
        p.sum[i][d][v] = kBits == 4 ? O::start4(c, z) : O::start8(c, z);
      }
    }
  }
  const std::byte* digits = record + 8 + 4 * D;
  // Not unrolled: GCC would then sum in another order, which needs more registers than there are.
#pragma GCC unroll 1
  for (std::int64_t w = 0; w < count; ++w) {
    nbits_word<O, kBits, D, M, V>(words + w * nr, digits + w * 8 * D, row_bytes, p);
  }
}

template <class O, int kBits, int D>
SDX_NBITS_INLINE typename O::Float nbits_value(const typename O::Int* sums, std::int64_t step) {
  if constexpr (kBits == 4) {
    return O::to_float(O::template end4<D>(sums, step));
  } else if constexpr (D == 1) {
    return O::to_float(sums[0]);
  } else {
    return O::mul_add(O::to_float(sums[step]), O::set(4096.0F), O::to_float(sums[0]));
  }
}

// Columns [first, first + V * lanes) of a panel.
template <class O, int kBits, int D, int M, int V, NBitsZeros kZeros>
void nbits_columns(const NBitsLayout& l, const NBitsRowFormat& f, const std::uint32_t* panel, const std::byte* rows,
                   std::int64_t first, float* out) {
  using Int = typename O::Int;
  using Float = typename O::Float;
  constexpr std::int64_t nr = 2 * O::kLanes;
  const std::int64_t skip = nr + l.zero_units();
  // No sums of blocks beside those of parts and rows.
  constexpr bool kDirect = O::kFewSums && M * V >= 8 && kZeros != NBitsZeros::floats;
  Float total[M][V];
  for (int i = 0; i < M; ++i) {
    for (int v = 0; v < V; ++v) total[i][v] = O::set(0.0F);
  }
  const std::byte* record = rows;
  for (std::int64_t b = 0; b < l.blocks; ++b) {
    const std::uint32_t* block = panel + b * l.block_units();
    const std::uint32_t* words = block + skip + first;
    nbits_prefetch(block);
    if constexpr (O::kLanes > 8) nbits_prefetch(block + 16);
    Int zero[V];
    if constexpr (kZeros == NBitsZeros::integers) {
      for (int v = 0; v < V; ++v) {
        zero[v] = O::zeros(reinterpret_cast<const std::byte*>(block + nr) + first + v * O::kLanes);
      }
    }
    const Int* zeros = kZeros == NBitsZeros::integers ? zero : nullptr;
    const auto* scales = reinterpret_cast<const float*>(block) + first;
    Float sum[M][V];
    for (int i = 0; i < M; ++i) {
      for (int v = 0; v < V; ++v) sum[i][v] = O::set(0.0F);
    }
    for (std::int64_t s = 0; s < f.parts; ++s) {
      NBitsPart<O, D, M, V> p;
      nbits_part<O, kBits, D, M, V>(words, nr, f.words, record, f.row_bytes, zeros, p);
      words += f.words * nr;
#pragma GCC unroll 4
      for (int i = 0; i < M; ++i) {
        float scale;
        std::memcpy(&scale, record + i * f.row_bytes, 4);
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) {
          Int digits[D];
          for (int d = 0; d < D; ++d) digits[d] = p.sum[i][d][v];
          if constexpr (kDirect) {
            const Float part = O::mul(nbits_value<O, kBits, D>(digits, 1), O::set(scale));
            total[i][v] = O::mul_add(part, O::load_float(scales + v * O::kLanes), total[i][v]);
            continue;
          }
          sum[i][v] = O::mul_add(nbits_value<O, kBits, D>(digits, 1), O::set(scale), sum[i][v]);
        }
      }
      if constexpr (kZeros == NBitsZeros::floats) {
        const auto* z = reinterpret_cast<const float*>(block + nr) + first;
        for (int i = 0; i < M; ++i) {
          float of_part;
          std::memcpy(&of_part, record + i * f.row_bytes + 4, 4);
          for (int v = 0; v < V; ++v) sum[i][v] = O::mul_add(O::load_float(z + v * O::kLanes), O::set(-of_part), sum[i][v]);
        }
      }
      record += f.record_bytes;
    }
    if constexpr (kDirect) continue;
#pragma GCC unroll 4
    for (int i = 0; i < M; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) total[i][v] = O::mul_add(sum[i][v], O::load_float(scales + v * O::kLanes), total[i][v]);
    }
  }
  for (int i = 0; i < M; ++i) {
    for (int v = 0; v < V; ++v) O::store(total[i][v], out + i * nr + first + v * O::kLanes);
  }
}

template <class O, int kBits, int D, int M>
void nbits_rows(const NBitsLayout& l, const NBitsRowFormat& f, const std::uint32_t* panel, const std::byte* rows, float* out) {
  // As many sums as leave registers for codes, digits and constants.
  constexpr int V = D * M * 2 <= O::kMostSums ? 2 : 1;
  for (std::int64_t first = 0; first < 2 * O::kLanes; first += V * O::kLanes) {
    switch (l.zeros) {
      case NBitsZeros::none: nbits_columns<O, kBits, D, M, V, NBitsZeros::none>(l, f, panel, rows, first, out); break;
      case NBitsZeros::integers: nbits_columns<O, kBits, D, M, V, NBitsZeros::integers>(l, f, panel, rows, first, out); break;
      case NBitsZeros::floats: nbits_columns<O, kBits, D, M, V, NBitsZeros::floats>(l, f, panel, rows, first, out); break;
    }
  }
}

template <class O, int kBits, int D>
void nbits_digits(const NBitsLayout& l, const NBitsRowFormat& f, const std::uint32_t* panel, const std::byte* rows,
                  std::int64_t m, float* out) {
  switch (m) {
    case 1: return nbits_rows<O, kBits, D, 1>(l, f, panel, rows, out);
    case 2: return nbits_rows<O, kBits, D, 2>(l, f, panel, rows, out);
    case 3: return nbits_rows<O, kBits, D, 3>(l, f, panel, rows, out);
    default: return nbits_rows<O, kBits, D, 4>(l, f, panel, rows, out);
  }
}

template <class O>
void nbits_panel(const NBitsLayout& l, const NBitsRowFormat& f, const std::uint32_t* panel, const std::byte* rows, std::int64_t m,
                 float* out) {
  if (l.bits == 8) {
    if (f.digits == 1) return nbits_digits<O, 8, 1>(l, f, panel, rows, m, out);
    return nbits_digits<O, 8, 2>(l, f, panel, rows, m, out);
  }
  if (f.digits == 1) return nbits_digits<O, 4, 1>(l, f, panel, rows, m, out);
  if (f.digits == 2) return nbits_digits<O, 4, 2>(l, f, panel, rows, m, out);
  return nbits_digits<O, 4, 3>(l, f, panel, rows, m, out);
}
