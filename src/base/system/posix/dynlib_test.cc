#include "base/system/dynlib.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "support/elf.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;
using testing::elf_bytes;
using testing::ElfSpec;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span<const char>(text)); }

class Dynlib : public ::testing::Test {
 protected:
  Dynlib() {
    fs::create_directories(folder / "lib");
    fs::create_directories(folder / "elsewhere");
    view.system = {(folder / "lib").string()};
  }

  std::string put(const std::string& place, const ElfSpec& spec) {
    const fs::path path = folder / place;
    write_file_atomically(path, elf_bytes(spec));
    return path.string();
  }

  const testing::TemporaryFolder temporary;
  const fs::path& folder = temporary.path();
  LoaderView view;
};

TEST_F(Dynlib, ReadsWhatALibraryNeeds) {
  const std::string file = elf_bytes({.soname = "libx.so.3",
                                      .needed = {"liba.so.1", "libb.so.2"},
                                      .rpath = "/old",
                                      .runpath = "$ORIGIN/../lib:/opt/x",
                                      .version_needs = {{"libc.so.6", "GLIBC_2.38"}, {"libm.so.6", "GLIBC_2.2"}},
                                      .version_defs = {"X_1", "X_2"}});
  const ElfInfo elf = read_elf(bytes_of(file));
  EXPECT_EQ(elf.bits, 64);
  EXPECT_TRUE(elf.shared);
  EXPECT_EQ(elf.soname, "libx.so.3");
  EXPECT_EQ(elf.needed, (std::vector<std::string>{"liba.so.1", "libb.so.2"}));
  EXPECT_EQ(elf.rpath, (std::vector<std::string>{"/old"}));
  EXPECT_EQ(elf.runpath, (std::vector<std::string>{"$ORIGIN/../lib", "/opt/x"}));
  ASSERT_EQ(elf.version_needs.size(), 2U);
  EXPECT_EQ(elf.version_needs[0].library, "libc.so.6");
  EXPECT_EQ(elf.version_needs[1].version, "GLIBC_2.2");
  EXPECT_EQ(elf.version_defs, (std::vector<std::string>{"X_1", "X_2"}));
}

TEST_F(Dynlib, DamagedFilesAreErrorsOnly) {
  const std::string good = elf_bytes({.soname = "libx.so.3",
                                      .needed = {"liba.so.1"},
                                      .version_needs = {{"libc.so.6", "GLIBC_2.38"}, {"libm.so.6", "GLIBC_2.2"}},
                                      .version_defs = {"X_1", "X_2"}});
  const auto survives = [](const std::string& file) {
    try {
      read_elf(bytes_of(file));
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::invalid_model);
    }
    read_loader_cache(bytes_of(file));
  };
  for (std::size_t size = 0; size < good.size(); ++size) survives(good.substr(0, size));
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::string bad = good;
    for (int k = 0; k < 1 + round % 4; ++k) bad[random() % bad.size()] = static_cast<char>(random());
    survives(bad);
  }
}

TEST_F(Dynlib, WhatIsMissingComesWithTheChainThatNeedsIt) {
  const std::string top = put("lib/libtop.so", {.needed = {"libmiddle.so.1"}});
  put("lib/libmiddle.so.1", {.needed = {"libcublasLt.so.12"}});
  put("lib/libcublasLt.so.13", {});
  const LibraryFinding finding = explain_library(top, view);
  EXPECT_FALSE(finding.loadable);
  ASSERT_EQ(finding.missing.size(), 1U);
  EXPECT_EQ(finding.missing[0].chain, (std::vector<std::string>{"libtop.so", "libmiddle.so.1", "libcublasLt.so.12"}));
  EXPECT_EQ(finding.missing[0].why, "not found");
  EXPECT_EQ(finding.missing[0].other_version, (folder / "lib/libcublasLt.so.13").string());
  testing::expect_parts(finding.reason, {"libmiddle.so.1 needs libcublasLt.so.12: not found", "this machine has version 13"});
  EXPECT_NE(finding.hint.find("pip install nvidia-cublas-cu12"), std::string::npos) << finding.hint;
}

TEST_F(Dynlib, SearchesAsTheLoaderDoes) {
  put("elsewhere/liba.so.1", {});
  const std::string origin = put("lib/liborigin.so", {.needed = {"liba.so.1"}, .runpath = "$ORIGIN/../elsewhere"});
  EXPECT_TRUE(explain_library(origin, view).loadable);

  // DT_RUNPATH is for the library's own needs; DT_RPATH for those of its dependencies as well.
  put("lib/libinner.so.1", {.needed = {"liba.so.1"}});
  const std::string with_runpath =
      put("lib/librun.so", {.needed = {"libinner.so.1"}, .runpath = (folder / "elsewhere").string()});
  EXPECT_FALSE(explain_library(with_runpath, view).loadable);
  const std::string with_rpath = put("lib/libr.so", {.needed = {"libinner.so.1"}, .rpath = (folder / "elsewhere").string()});
  EXPECT_TRUE(explain_library(with_rpath, view).loadable);

  LoaderView more = view;
  more.library_path = {(folder / "elsewhere").string()};
  EXPECT_TRUE(explain_library(with_runpath, more).loadable);
  more = view;
  more.cache = {{"liba.so.1", (folder / "elsewhere/liba.so.1").string()}};
  EXPECT_TRUE(explain_library(with_runpath, more).loadable);
  more = view;
  more.loaded = {"/already/loaded/liba.so.1"};
  EXPECT_TRUE(explain_library(with_runpath, more).loadable);
}

TEST_F(Dynlib, OtherMachinesAndOlderSystems) {
  const std::uint16_t foreign = own_elf_machine() == 183 ? 62 : 183;
  const std::string arm = put("lib/libforeign.so", {.machine = foreign});
  EXPECT_NE(explain_library(arm, view).reason.find("is for " + elf_machine_name(foreign)), std::string::npos);

  put("lib/libc.so.6", {.version_defs = {"GLIBC_2.36"}});
  const std::string newer = put("lib/libnew.so", {.needed = {"libc.so.6"}, .version_needs = {{"libc.so.6", "GLIBC_2.38"}}});
  const LibraryFinding finding = explain_library(newer, view);
  EXPECT_NE(finding.reason.find("has no GLIBC_2.38"), std::string::npos) << finding.reason;
  EXPECT_NE(finding.hint.find("older version"), std::string::npos) << finding.hint;

  std::ofstream(folder / "lib/libtext.so") << "this is not a library";
  EXPECT_FALSE(explain_library(folder / "lib/libtext.so", view).loadable);
  EXPECT_EQ(explain_library("libnowhere.so.1", view).reason, "libnowhere.so.1 is not found");
}

TEST_F(Dynlib, LibrariesThatNeedEachOther) {
  put("lib/liba.so.1", {.needed = {"libb.so.1"}});
  put("lib/libb.so.1", {.needed = {"liba.so.1"}});
  EXPECT_TRUE(explain_library(folder / "lib/liba.so.1", view).loadable);
}

TEST_F(Dynlib, LoaderCache) {
  std::string cache = "glibc-ld.so.cache1.1";
  const auto put32 = [&](std::uint32_t v) { cache.append(reinterpret_cast<const char*>(&v), 4); };
  put32(1), put32(0);
  cache.resize(48, '\0');
  const std::uint32_t flags = own_elf_machine() == 183 ? 0x0a03 : 0x0303;
  put32(flags), put32(72), put32(72 + 10), put32(0), put32(0), put32(0);
  cache += std::string("libz.so.1\0/lib/libz.so.1\0", 25);
  const auto entries = read_loader_cache(bytes_of(cache));
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].soname, "libz.so.1");
  EXPECT_EQ(entries[0].path, "/lib/libz.so.1");
}

#if defined(__linux__)
TEST_F(Dynlib, ThisMachinesOwnLibraryLoads) {
  const LibraryFinding finding = explain_library("libstdc++.so.6");
  EXPECT_TRUE(finding.loadable) << finding.reason;
  EXPECT_NE(DynamicLibrary::open("libm.so.6")->symbol("cos"), nullptr);
  EXPECT_EQ(DynamicLibrary::open("libm.so.6")->symbol("no_such_function"), nullptr);
}

// The loader would map what is missing, and reading it would kill the process.
TEST_F(Dynlib, AFileThatIsCutShortIsNotLoaded) {
  const std::string whole = read_file(find_library("libm.so.6"), 1 << 26);
  const fs::path half = folder / "libhalf.so";
  write_file_atomically(half, whole.substr(0, whole.size() / 2));
  EXPECT_FALSE(explain_library(half).loadable);
  testing::expect_error(ErrorCode::provider_unavailable, [&] { DynamicLibrary::open(half); }, {"it is cut short"});
}

TEST_F(Dynlib, OpeningSaysWhy) {
  const std::string top = put("lib/libtop.so", {.needed = {"libcudnn.so.5"}});
  testing::expect_error(ErrorCode::provider_unavailable, [&] { DynamicLibrary::open(top); },
                        {"libtop.so needs libcudnn.so.5: not found", "the package libcudnn5"});
}
#endif

TEST(Packages, FollowTheVersionThatIsNeeded) {
  EXPECT_NE(package_of("libcudnn.so.8").find("libcudnn8"), std::string::npos);
  EXPECT_NE(package_of("libcufft.so.11").find("CUDA 12"), std::string::npos);
  EXPECT_NE(package_of("libcufft.so.12").find("pip install nvidia-cufft`"), std::string::npos);
  EXPECT_NE(package_of("libcudart.so.11").find("nvidia-cuda-runtime-cu11"), std::string::npos);
  EXPECT_NE(package_of("libnvinfer.so.10").find("tensorrt==10"), std::string::npos);
  EXPECT_EQ(package_of("libsomething.so.1"), "");
}

}  // namespace
}  // namespace sdx
