#include "benchmark/machine_limits.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/system/mapped_file.h"
#include "base/system/process.h"
#include "kernels/cpu/simd/limits_simd.h"
#include "support/temporary_folder.h"

namespace sdx::benchmark {
namespace {

namespace fs = std::filesystem;

// A cache folder of its own for as long as it lives.
class CacheScope {
 public:
  CacheScope() { set_environment("SDX_CACHE_DIR", folder().string().c_str()); }
  ~CacheScope() { set_environment("SDX_CACHE_DIR", nullptr); }
  const fs::path& folder() const { return temporary_.path(); }

 private:
  const testing::TemporaryFolder temporary_;
};

TEST(MachineLimits, KeepsTheBest) {
  const CacheScope cache;
  const fs::path file = cache.folder() / "machine.json";
  const MachineLimits first = machine_limits(1);
  EXPECT_EQ(first.threads, 1);
  EXPECT_GT(first.gflops_per_s, 0);
  EXPECT_GT(first.read_gbytes_per_s, 0);
  ASSERT_TRUE(fs::exists(file));
  const MachineLimits second = machine_limits(1);
  EXPECT_GE(second.gflops_per_s, first.gflops_per_s);
  EXPECT_GE(second.read_gbytes_per_s, first.read_gbytes_per_s);
}

TEST(MachineLimits, AnythingElseInTheFileIsReplaced) {
  const CacheScope cache;
  const fs::path file = cache.folder() / "machine.json";
  fs::create_directories(cache.folder());
  for (const char* text : {"", "[1]", "{\"", "{\"x\": 1e999}", "\xff\xfe"}) {
    write_file_atomically(file, std::string(text));
    EXPECT_GT(machine_limits(1).gflops_per_s, 0) << text;
    EXPECT_NE(read_file(file).find("read_gbytes_per_s"), std::string::npos) << text;
  }
}

TEST(MachineLimits, ShareIsOfTheNearerLimit) {
  const MachineLimits limits{2, 100, 20};
  EXPECT_DOUBLE_EQ(limit_share(limits, "cpu", 50, 1).share, 0.5);
  EXPECT_FALSE(limit_share(limits, "cpu", 50, 1).by_memory);
  EXPECT_DOUBLE_EQ(limit_share(limits, "cpu", 10, 15).share, 0.75);
  EXPECT_TRUE(limit_share(limits, "cpu", 10, 15).by_memory);
  EXPECT_EQ(limit_share(limits, "cuda", 50, 1).share, 0);
  EXPECT_EQ(limit_share({}, "cpu", 50, 1).share, 0);
}

TEST(MachineLimits, LoopsDoWhatTheyCount) {
  EXPECT_EQ(cpu::fma_rounds(4), 4 * cpu::fma_rounds(1));
  std::vector<float> x(8192, 0.5F);
  EXPECT_EQ(cpu::read_once(x.data(), 8192), 4096.0F);
}

}  // namespace
}  // namespace sdx::benchmark
