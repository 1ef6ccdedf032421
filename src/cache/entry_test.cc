#include "cache/entry.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <thread>

#include "base/hash.h"
#include "base/system/mapped_file.h"
#include "support/temporary_folder.h"

namespace sdx::cache {
namespace {

namespace fs = std::filesystem;

class CacheEntryTest : public ::testing::Test {
 protected:
  void write(const CacheEntry& e, const std::string& name, const std::string& text) const {
    fs::create_directories((e.folder() / name).parent_path());
    std::ofstream(e.folder() / name) << text;
  }
  std::shared_ptr<CacheEntry> open(const std::string& key = "key") const {
    return CacheEntry::open(root_ / "vendor", key, "model.onnx");
  }
  const testing::TemporaryFolder temporary_;
  const fs::path& root_ = temporary_.path();
};

TEST_F(CacheEntryTest, WhatWasSealedIsThereAgain) {
  {
    const auto e = open();
    ASSERT_TRUE(e);
    EXPECT_FALSE(e->warm());
    write(*e, "engine.bin", "engine");
    write(*e, "inner/context.onnx", "");
  }
  const auto e = open();
  EXPECT_TRUE(e->warm());
  EXPECT_EQ(read_file(e->folder() / "engine.bin"), "engine");
  EXPECT_TRUE(fs::exists(e->folder() / "inner/context.onnx"));
}

TEST_F(CacheEntryTest, AnythingElseIsRemoved) {
  const std::vector<std::function<void(const fs::path&)>> damages{
      [](const fs::path& f) { fs::resize_file(f / "engine.bin", 3); },
      [](const fs::path& f) { std::ofstream(f / "engine.bin") << "Engine"; },
      [](const fs::path& f) { fs::remove(f / "engine.bin"); },
      [](const fs::path& f) { std::ofstream(f / "half.bin") << "written by a process that was killed"; },
      [](const fs::path& f) { fs::remove(f / ".sealed"); },
      [](const fs::path& f) { fs::resize_file(f / ".sealed", 30); },
      [](const fs::path& f) { std::ofstream(f / ".sealed") << "file -1 x y\nfile\nlabel\n\n"; },
  };
  for (std::size_t i = 0; i < damages.size(); ++i) {
    fs::path folder;
    {
      const auto e = open();
      folder = e->folder();
      write(*e, "engine.bin", "engine");
      write(*e, "other.bin", "other");
    }
    damages[i](folder);
    const auto e = open();
    ASSERT_TRUE(e);
    EXPECT_FALSE(e->warm()) << i;
    EXPECT_FALSE(fs::exists(folder / "engine.bin")) << i;
    EXPECT_FALSE(fs::exists(folder / "other.bin")) << i;
  }
}

TEST_F(CacheEntryTest, AnEntryInUseIsSharedAndNotCheckedOrRemoved) {
  const auto first = open();
  write(*first, "engine.bin", "half of it");
  const auto second = open();
  ASSERT_TRUE(second);
  EXPECT_TRUE(fs::exists(second->folder() / "engine.bin"));
  auto items = list_cache(root_);
  ASSERT_EQ(items.size(), 1U);
  EXPECT_TRUE(items[0].in_use);
  EXPECT_FALSE(remove_cache_item(items[0]));
  EXPECT_TRUE(fs::exists(second->folder() / "engine.bin"));
}

TEST_F(CacheEntryTest, EntriesAreListedAndRemoved) {
  for (const char* key : {"a", "b"}) {
    const auto e = open(key);
    write(*e, "engine.bin", "12345");
    write(*e, "more/context.bin", "123");
  }
  fs::create_directories(root_ / "somebody" / "else");
  auto items = list_cache(root_);
  ASSERT_EQ(items.size(), 2U);
  EXPECT_EQ(items[0].provider, "vendor");
  EXPECT_EQ(items[0].label, "model.onnx");
  EXPECT_EQ(items[0].bytes, 8U);
  EXPECT_EQ(items[0].files, 2U);
  EXPECT_FALSE(items[0].in_use);
  EXPECT_TRUE(remove_cache_item(items[0]));
  EXPECT_EQ(list_cache(root_).size(), 1U);
  EXPECT_TRUE(fs::exists(root_ / "somebody" / "else"));
  EXPECT_TRUE(list_cache(root_ / "nothing").empty());
}

TEST_F(CacheEntryTest, DiscardedFilesAreGone) {
  const auto e = open();
  write(*e, "engine.bin", "engine");
  e->seal();
  e->discard();
  EXPECT_FALSE(fs::exists(e->folder() / "engine.bin"));
  EXPECT_FALSE(e->warm());
}

TEST_F(CacheEntryTest, WhereNothingCanBeWrittenNothingIsKept) {
  fs::create_directories(root_);
  std::ofstream(root_ / "vendor") << "a file where a folder should be";
  EXPECT_EQ(open(), nullptr);
}

TEST_F(CacheEntryTest, ManyAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 20; ++i) {
        const auto e = open(i % 2 == 0 ? "even" : "odd");
        ASSERT_TRUE(e);
        write(*e, "engine" + std::to_string(t), "engine");
        e->seal();
        for (const CacheItem& item : list_cache(root_)) remove_cache_item(item);
        EXPECT_TRUE(fs::exists(e->folder() / ("engine" + std::to_string(t))));
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

TEST(ContentHash, TellsContentsApart) {
  const auto of = [](std::initializer_list<std::string_view> parts) {
    ContentHash h;
    for (const std::string_view p : parts) h.add(p);
    return h.text();
  };
  const std::set<std::string> all{of({}), of({""}), of({"a"}), of({"ab", "c"}), of({"a", "bc"}), of({"abc"})};
  EXPECT_EQ(all.size(), 6U);
  EXPECT_EQ(of({"a", "bc"}), of({"a", "bc"}));
  EXPECT_EQ(of({"a"}).size(), 32U);
}

}  // namespace
}  // namespace sdx::cache
