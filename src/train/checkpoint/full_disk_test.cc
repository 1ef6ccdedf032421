// Where the system can limit the size of files, which stands for a full disk.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <iterator>
#include <sdx/train/checkpoint.hpp>

#include "support/errors.h"
#include "support/temporary_folder.h"
#include "train/checkpoint/format.h"

namespace sdx::train {
namespace {

namespace fs = std::filesystem;

CheckpointState sample(float first) {
  CheckpointState s;
  s.parameters.push_back({"weight", Tensor(DataType::float32, {30, 20}), true});
  for (float& v : s.parameters[0].value.mutable_values<float>()) v = first++;
  return s;
}

// No file may become longer than this while it exists.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit tight{bytes, old_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &tight);
  }
  ~FileLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, handler_);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit old_{};
};

TEST(CheckpointOnAFullDisk, TheOldOneStays) {
  const testing::TemporaryFolder folder;
  const fs::path path = folder / "checkpoint", large_path = folder / "large";
  sample(1).save(path, true);
  save_checkpoint(sample(1), large_path, true, 100);
  std::string small, large;
  {
    const FileLimit limit(1000);
    small = testing::error_text([&] { sample(2).save(path, true); });
    large = testing::error_text([&] { save_checkpoint(sample(2), large_path, true, 100); });
  }
  EXPECT_NE(small.find("cannot write '" + path.string()), std::string::npos) << small;
  EXPECT_NE(large.find("cannot write '" + large_path.string() + ".data"), std::string::npos) << large;
  EXPECT_EQ(CheckpointState::load(path).bytes(true), sample(1).bytes(true));
  EXPECT_EQ(CheckpointState::load(large_path).bytes(true), sample(1).bytes(true));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 3);
}

}  // namespace
}  // namespace sdx::train
