#include "base/system/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sdx/mapped_files.hpp>

#include "base/error.h"
#include "support/errors.h"
#include "support/sanitizers.h"
#include "support/temporary_folder.h"

namespace sdx {
namespace {

class MappedFaults : public ::testing::Test {
 protected:
  MappedFaults() { write(path_, std::string(kBytes, 'a')); }
  static void write(const std::filesystem::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc).write(text.data(), static_cast<std::streamsize>(text.size()));
  }
  static constexpr std::size_t kBytes = 20000;
  const testing::TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "file";
};

TEST_F(MappedFaults, WritingToAMappedFileIsNoticed) {
  const auto file = MappedFile::open(path_, kBytes - 1);
  EXPECT_TRUE(file->is_mapped());
  file->check_unchanged();
  std::filesystem::resize_file(path_, kBytes - 1);
  EXPECT_THROW(file->check_unchanged(), Error);
}

TEST_F(MappedFaults, SoIsWritingAsMuchAsThereWas) {
  std::filesystem::last_write_time(path_, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  const auto file = MappedFile::open(path_, 0);
  write(path_, std::string(kBytes, 'b'));
  EXPECT_THROW(file->check_unchanged(), Error);
}

// Sums what a file has, which touches each of its pages.
int sum_of(const MappedFile& file) {
  int sum = 0;
  for (const std::byte b : file.bytes()) sum += std::to_integer<int>(b);
  return sum;
}

std::string damage() {
  return testing::error_message([&] { MappedFile::check_none_damaged(); });
}

TEST_F(MappedFaults, WhatAFileNoLongerHasReadsAsZeros) {
  survive_mapped_faults();
  EXPECT_EQ(damage(), "");
  const auto whole = MappedFile::open(path_, 0);
  auto file = MappedFile::open(path_, 0);
  EXPECT_EQ(sum_of(*file), static_cast<int>(kBytes * 'a'));
  std::filesystem::resize_file(path_, 100);  // the rest of its page stays readable, as zeros
  EXPECT_EQ(sum_of(*file), 100 * 'a');
  EXPECT_THROW(file->check_unchanged(), Error);
  EXPECT_NE(damage().find("was cut short while in use"), std::string::npos) << damage();
  // A damaged part stays damaged, whatever happens to the file, and so does the process's knowledge of it.
  write(path_, std::string(kBytes, 'a'));
  std::filesystem::remove(path_);
  EXPECT_THROW(file->check_unchanged(), Error);
  file.reset();
  EXPECT_NE(damage(), "");
  EXPECT_THROW(check_mapped_files(), Error);
  EXPECT_NO_THROW(whole->check_unchanged());
}

// The handler that was there before ends the process: by the signal, or with a sanitizer's report and exit code.
bool is_ended_by_fault(int status) {
  return ::testing::KilledBySignal(SIGBUS)(status) ||
         (sdx::testing::kAddressSanitizer && WIFEXITED(status) && WEXITSTATUS(status) != 0);
}

TEST_F(MappedFaults, OtherFaultsEndTheProcessAsBefore) {
  const auto die = [this] {
    survive_mapped_faults();
    std::ofstream(path_, std::ios::trunc).flush();
    const int fd = ::open(path_.c_str(), O_RDONLY);
    const void* none = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    ::_exit(*static_cast<const volatile char*>(none));
  };
  EXPECT_EXIT(die(), is_ended_by_fault, "");
  const auto be_killed = [] {
    survive_mapped_faults();
    ::raise(SIGBUS);
  };
  EXPECT_EXIT(be_killed(), is_ended_by_fault, "");
}

TEST_F(MappedFaults, OneThatWasReplacedOrRemovedIsWhatItWas) {
  const auto file = MappedFile::open(path_, 0);
  const std::filesystem::path other = path_.string() + ".new";
  write(other, "x");
  std::filesystem::rename(other, path_);
  file->check_unchanged();
  std::filesystem::remove(path_);
  file->check_unchanged();
  EXPECT_EQ(file->bytes().back(), std::byte{'a'});
}

}  // namespace
}  // namespace sdx
