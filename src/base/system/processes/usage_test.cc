#include "base/system/processes/usage.h"

#include <gtest/gtest.h>

#include "base/system/process.h"

namespace sdx {
namespace {

TEST(Usage, CountsTimeAndMemory) {
  const ProcessUse before = process_use();
  volatile double sum = 0;
  while (process_use().cpu_ns - before.cpu_ns < 20'000'000) sum = sum + 1;
  EXPECT_GE(before.peak_bytes, std::uint64_t{1} << 20);
  EXPECT_GE(process_use().peak_bytes, before.peak_bytes);
}

TEST(Usage, ProcessorsAddUpTheirTime) {
  const auto before = processor_times();
  if (!before) GTEST_SKIP() << "the system does not say";
  EXPECT_GT(before->busy, 0);
  const ProcessUse use = process_use();
  volatile double sum = 0;
  while (process_use().cpu_ns - use.cpu_ns < 60'000'000) sum = sum + 1;
  EXPECT_GT(processor_times()->busy, before->busy);
}

TEST(Usage, ProcessesThatExist) {
  EXPECT_TRUE(process_exists(process_id()));
  EXPECT_FALSE(process_exists(0x7FFF'FFF0));
}

}  // namespace
}  // namespace sdx
