#include "kernels/cpu/movement/transpose.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

template <class T>
void check(std::int64_t rows, std::int64_t columns) {
  SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns) + " of " + std::to_string(sizeof(T)) + " bytes");
  std::vector<T> x(static_cast<std::size_t>(rows * columns)), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i * 7919);
  const std::int64_t dims[2] = {rows, columns};
  const int perm[2] = {1, 0};
  transpose(x.data(), y.data(), sizeof(T), 2, dims, perm);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      ASSERT_EQ(y[static_cast<std::size_t>(j * rows + i)], x[static_cast<std::size_t>(i * columns + j)]) << i << ", " << j;
    }
  }
}

// Rows whose length is a power of two take a different code path.
TEST(KernelsTranspose, EveryElementFindsItsPlace) {
  test::for_each_isa([] {
    for (const std::int64_t rows : {1, 3, 16, 33, 256, 512, 700}) {
      for (const std::int64_t columns : {1, 4, 17, 256, 512, 513}) {
        check<std::uint8_t>(rows, columns);
        check<std::uint16_t>(rows, columns);
        check<std::uint32_t>(rows, columns);
        check<std::uint64_t>(rows, columns);
      }
    }
  });
}

}  // namespace
}  // namespace sdx::cpu
