// com.microsoft MurmurHash3 1: a 32-bit hash of every element. Source: MurmurHash3_x86_32 (A. Appleby, public domain), as
// published.

#include <bit>
#include <string_view>

#include "ops/context.h"
#include "ops/op.h"
#include "ops/signature.h"

namespace sdx::ops {
namespace {

struct MurmurHash3Attrs {
  std::int64_t positive = 1;
  std::int64_t seed = 0;

  void fields(auto& f) {
    f("positive", positive);
    f("seed", seed);
  }
};

std::uint32_t scrambled(std::uint32_t k) { return std::rotl(k * 0xCC9E2D51U, 15) * 0x1B873593U; }

// Blocks of four bytes are read little-endian.
std::uint32_t murmur3(std::string_view bytes, std::uint32_t seed) {
  const auto part = [&](std::size_t from, std::size_t count) {
    std::uint32_t k = 0;
    for (std::size_t i = count; i-- > 0;) k = k << 8 | static_cast<unsigned char>(bytes[from + i]);
    return k;
  };
  std::uint32_t h = seed;
  const std::size_t whole = bytes.size() / 4 * 4;
  for (std::size_t i = 0; i < whole; i += 4) h = std::rotl(h ^ scrambled(part(i, 4)), 13) * 5 + 0xE6546B64U;
  if (whole < bytes.size()) h ^= scrambled(part(whole, bytes.size() - whole));
  h ^= static_cast<std::uint32_t>(bytes.size());
  h = (h ^ h >> 16) * 0x85EBCA6BU;
  h = (h ^ h >> 13) * 0xC2B2AE35U;
  return h ^ h >> 16;
}

DataType result_type(const MurmurHash3Attrs& attr) { return attr.positive == 1 ? DataType::uint32 : DataType::int32; }

void infer_murmur(InferContext& c) {
  const auto attr = parse<MurmurHash3Attrs>(c);
  if (const SymShape* x = c.shape(0)) return c.output(0, result_type(attr), *x);
  c.output(0, result_type(attr));
}

void run_murmur(OpContext& c) {
  const auto attr = parse<MurmurHash3Attrs>(c);
  const Tensor& x = c.input(0);
  const auto seed = static_cast<std::uint32_t>(attr.seed);
  Tensor& y = c.output(0, result_type(attr), x.shape());
  const auto width = static_cast<std::size_t>(x.dtype() == DataType::string ? 0 : byte_size(x.dtype(), 1));
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::string_view bytes = width == 0 ? std::string_view(x.values<std::string>()[at])
                                              : std::string_view(static_cast<const char*>(x.data()) + at * width, width);
    const std::uint32_t h = murmur3(bytes, seed);
    if (y.dtype() == DataType::uint32) {
      y.mutable_values<std::uint32_t>()[at] = h;
    } else {
      y.mutable_values<std::int32_t>()[at] = static_cast<std::int32_t>(h);
    }
  }
}

}  // namespace

void register_murmur_hash3(OpTable& t) {
  t.add(OpDef("com.microsoft", "MurmurHash3", 1)
            .in("X", "T1",
                types::indices | types::string | set_of(DataType::uint32, DataType::uint64, DataType::float32, DataType::float64))
            .out("Y", "T2", set_of(DataType::uint32, DataType::int32))
            .attrs<MurmurHash3Attrs>()
            .infer_with(infer_murmur)
            .run_with(run_murmur));
}

}  // namespace sdx::ops
