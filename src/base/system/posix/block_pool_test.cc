#include "base/block_pool.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace sdx {
namespace {

TEST(BlockPoolOfPosix, PagesOfABlockGoWithIt) {
  BlockPool pool;
  constexpr std::size_t kBytes = std::size_t{8} << 20;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  auto gone = pool.allocate(kBytes);
  const auto stays = pool.allocate(kBytes);
  ASSERT_EQ(static_cast<char*>(stays.get()), static_cast<char*>(gone.get()) + kBytes);
  std::memset(gone.get(), 1, kBytes);
  std::memset(stays.get(), 1, kBytes);
  void* const at = gone.get();
  const auto resident = [page](void* data) {
    std::vector<unsigned char> pages(kBytes / page);
    EXPECT_EQ(::mincore(data, kBytes, pages.data()), 0);
    return std::count_if(pages.begin(), pages.end(), [](unsigned char c) { return (c & 1) != 0; });
  };
  EXPECT_EQ(resident(at), static_cast<std::ptrdiff_t>(kBytes / page));
  gone.reset();
  EXPECT_EQ(resident(at), 0);
  EXPECT_EQ(resident(stays.get()), static_cast<std::ptrdiff_t>(kBytes / page));
  EXPECT_EQ(static_cast<const char*>(stays.get())[0], 1);
}

}  // namespace
}  // namespace sdx
