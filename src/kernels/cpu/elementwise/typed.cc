#include "kernels/cpu/elementwise/typed.h"

#include "kernels/cpu/elementwise/typed_simd.h"

namespace sdx::cpu {

std::optional<Elem> elem_of(DataType type) {
  switch (type) {
    case DataType::boolean:
    case DataType::uint8: return Elem::u8;
    case DataType::int8: return Elem::i8;
    case DataType::uint16: return Elem::u16;
    case DataType::int16: return Elem::i16;
    case DataType::uint32: return Elem::u32;
    case DataType::int32: return Elem::i32;
    case DataType::uint64: return Elem::u64;
    case DataType::int64: return Elem::i64;
    case DataType::float32: return Elem::f32;
    case DataType::float64: return Elem::f64;
    default: return std::nullopt;
  }
}

namespace {

// Minimum elements per thread: about 10 microseconds of work, a few times the cost of a fork and join.
constexpr std::int64_t kGrain = 32768;

std::int64_t bytes_of(Elem elem) {
  switch (elem) {
    case Elem::u8:
    case Elem::i8: return 1;
    case Elem::u16:
    case Elem::i16: return 2;
    case Elem::u64:
    case Elem::i64:
    case Elem::f64: return 8;
    default: return 4;
  }
}

bool gives_bytes(Pair op) { return op < Pair::add; }
bool gives_bytes(Map op) { return op > Map::square_root; }

const char* at(const void* p, std::int64_t bytes) { return static_cast<const char*>(p) + bytes; }
char* at(void* p, std::int64_t bytes) { return static_cast<char*>(p) + bytes; }

}  // namespace

PairRow pair_row(Pair op, Elem elem) { return typed_kernels().pair(op, elem); }
MapRow map_row(Map op, Elem elem) { return typed_kernels().map(op, elem); }

void pair_broadcast(Pair op, Elem elem, const RowPlan<2>& plan, const void* a, const void* b, void* y) {
  const PairRow row = pair_row(op, elem);
  const std::int64_t in = bytes_of(elem), out = gives_bytes(op) ? 1 : in;
  parallel_rows(plan, kGrain, [&](const std::int64_t(&from)[2], std::int64_t to, std::int64_t n) {
    row(at(a, from[0] * in), plan.inner_step[0], at(b, from[1] * in), plan.inner_step[1], at(y, to * out), n);
  });
}

void map_elements(Map op, Elem elem, const void* x, void* y, std::int64_t n) {
  const MapRow row = map_row(op, elem);
  const std::int64_t in = bytes_of(elem), out = gives_bytes(op) ? 1 : in;
  parallel_for(n, kGrain, [&](std::int64_t begin, std::int64_t end) { row(at(x, begin * in), at(y, begin * out), end - begin); });
}

void select_broadcast(int bytes, const RowPlan<3>& plan, const std::uint8_t* condition, const void* a, const void* b, void* y) {
  const SelectRow row = typed_kernels().select(bytes);
  parallel_rows(plan, kGrain, [&](const std::int64_t(&from)[3], std::int64_t to, std::int64_t n) {
    row(condition + from[0], plan.inner_step[0], at(a, from[1] * bytes), plan.inner_step[1], at(b, from[2] * bytes),
        plan.inner_step[2], at(y, to * bytes), n);
  });
}

}  // namespace sdx::cpu
