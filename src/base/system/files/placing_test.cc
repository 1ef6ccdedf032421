#include "base/system/files/placing.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>

#include "support/temporary_folder.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;

TEST(Placing, DiskMemoryIsZeroAndKeepsWhatIsWritten) {
  constexpr std::size_t kBytes = 3 << 20;
  auto* const memory = static_cast<unsigned char*>(take_disk_memory(kBytes));
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(memory[0], 0);
  EXPECT_EQ(memory[kBytes - 1], 0);
  std::memset(memory, 7, kBytes);
  EXPECT_EQ(memory[kBytes / 2], 7);
  give_back_disk_memory(memory, kBytes);
}

TEST(Placing, DiskMemoryBeyondTheDiskIsRefused) {
  EXPECT_EQ(take_disk_memory(std::numeric_limits<std::size_t>::max() / 4), nullptr);
  EXPECT_NE(errno, 0);
}

TEST(Placing, ALockedFolderIsRemoved) {
  const testing::TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "locked";
  fs::create_directories(folder / "a" / "b");
  std::ofstream(folder / "a" / "file") << "text";
  File lock = open_folder_lock(folder);
  ASSERT_TRUE(lock.lock(File::Lock::exclusive, false));
  EXPECT_EQ(remove_locked_folder(folder, lock), std::error_code());
  EXPECT_FALSE(lock);
  EXPECT_FALSE(fs::exists(folder));
}

}  // namespace
}  // namespace sdx
