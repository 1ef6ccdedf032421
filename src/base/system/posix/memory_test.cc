#include "base/memory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace sdx {
namespace {

TEST(BlockKeepOfPosix, ChildrenOfAProcessWhoseThreadsUseItCanUseIt) {
  constexpr std::size_t kSize = std::size_t{1} << 20;
  const auto keep = std::make_shared<BlockKeep>();
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    const KeepScope scope(keep);
    while (!stop) allocate(kSize).reset();
  });
  for (int i = 0; i < 200; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(30);  // instead of waiting for ever
      const KeepScope scope(keep);
      allocate(kSize).reset();
      BlockKeep().give(nullptr, 0);
      ::_exit(keep->kept_bytes() >= kSize ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  stop = true;
  busy.join();
}

}  // namespace
}  // namespace sdx
