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

namespace sdx {
namespace {

class MappedFileTest : public ::testing::Test {
 protected:
  void SetUp() override { write(path_, std::string(kBytes, 'a')); }
  void TearDown() override { std::filesystem::remove(path_); }
  static void write(const std::filesystem::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc).write(text.data(), static_cast<std::streamsize>(text.size()));
  }
  static constexpr std::size_t kBytes = 20000;
  const std::filesystem::path path_ = std::filesystem::temp_directory_path() / ("sdx_mapped_file_" + std::to_string(::getpid()));
};

TEST_F(MappedFileTest, ACopyIsNobodyElses) {
  const auto file = MappedFile::open(path_, kBytes);
  EXPECT_FALSE(file->is_mapped());
  std::filesystem::resize_file(path_, 1);
  file->check_unchanged();
  release_mapped_pages(file->bytes().data(), kBytes);  // would lose a copy's contents
  for (const std::byte b : file->bytes()) ASSERT_EQ(b, std::byte{'a'});
}

TEST_F(MappedFileTest, WritingToAMappedFileIsNoticed) {
  const auto file = MappedFile::open(path_, kBytes - 1);
  EXPECT_TRUE(file->is_mapped());
  file->check_unchanged();
  std::filesystem::resize_file(path_, kBytes - 1);
  EXPECT_THROW(file->check_unchanged(), Error);
}

TEST_F(MappedFileTest, SoIsWritingAsMuchAsThereWas) {
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

TEST_F(MappedFileTest, WhatAFileNoLongerHasReadsAsZeros) {
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

TEST_F(MappedFileTest, OtherFaultsEndTheProcessAsBefore) {
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

TEST_F(MappedFileTest, OneThatWasReplacedOrRemovedIsWhatItWas) {
  const auto file = MappedFile::open(path_, 0);
  const std::filesystem::path other = path_.string() + ".new";
  write(other, "x");
  std::filesystem::rename(other, path_);
  file->check_unchanged();
  std::filesystem::remove(path_);
  file->check_unchanged();
  EXPECT_EQ(file->bytes().back(), std::byte{'a'});
}

TEST_F(MappedFileTest, TheFileThatHoldsAnAddress) {
  for (const std::size_t copied : {std::size_t{0}, kBytes}) {
    const auto file = MappedFile::open(path_, copied);
    EXPECT_EQ(MappedFile::holding(file->bytes().data() + 7), file);
    EXPECT_EQ(MappedFile::holding(this), nullptr);
    const auto place = MappedFile::place_of(file->bytes().data() + 7);
    ASSERT_TRUE(place);
    EXPECT_EQ(place->path, path_);
    EXPECT_EQ(place->offset, 7U);
  }
}

TEST_F(MappedFileTest, PiecesMakeUpTheFile) {
  std::string text(std::size_t{2} << 20, 'x');
  text += "end";
  write(path_, text);
  std::string read;
  read_pieces(path_,
              [&](std::span<const std::byte> piece) { read.append(reinterpret_cast<const char*>(piece.data()), piece.size()); });
  EXPECT_EQ(read, text);
  EXPECT_THROW(read_pieces(path_.string() + ".none", [](auto) {}), Error);
}

}  // namespace
}  // namespace sdx
