#include "providers/ort/plugins.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "providers/vendor/search.h"
#include "support/temporary_folder.h"

namespace sdx::ort {
namespace {

namespace fs = std::filesystem;

// An ONNX Runtime that registers plugins and has no devices. As the real one it takes a name once.
struct Registered {
  std::vector<std::pair<std::string, std::string>> all;  // name, file
  std::string refused;                                   // files whose path contains it are refused
};
Registered* registered = nullptr;

c::Status* ok() { return nullptr; }

c::Status* register_plugin(c::Env*, const char* name, const char* file) {
  registered->all.emplace_back(name, file);
  if (registered->refused.empty() || std::strstr(file, registered->refused.c_str()) == nullptr) return ok();
  return reinterpret_cast<c::Status*>(registered);
}

c::Status* no_devices(const c::Env*, const c::EpDevice* const** devices, std::size_t* count) {
  *devices = nullptr;
  *count = 0;
  return ok();
}

const void* const* table_of(std::uint32_t version) {
  static std::array<const void*, 414> table{};
  const auto put = [](std::size_t place, auto* function) { table[place] = reinterpret_cast<const void*>(function); };
  put(
      2, +[](const c::Status*) { return "it does not like the file"; });
  put(
      4, +[](c::LogFunction, void*, int, const char*, c::Env**) { return ok(); });
  put(
      69, +[](int, int, c::MemoryInfo**) { return ok(); });
  put(
      78, +[](c::Allocator**) { return ok(); });
  put(
      93, +[](c::Status*) {});
  put(
      125, +[](char***, int* count) { return *count = 0, ok(); });
  put(
      126, +[](char**, int) { return ok(); });
  put(301, &register_plugin);
  put(303, &no_devices);
  return version == 22 ? table.data() : nullptr;
}

// Libraries outlive the process's list of their registrations.
const Library& a_runtime() {
  static auto* const kept = new std::vector<std::shared_ptr<const Library>>;
  kept->push_back(Library::from({&table_of, [] { return "1.22.0"; }}, "/somewhere/libonnxruntime.so", nullptr));
  return *kept->back();
}

class Plugins : public ::testing::Test {
 protected:
  void SetUp() override {
    registered = &registered_;
    for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX", "HOME", "PATH", "SDX_ORT_EP_LIBS"}) {
      const char* value = std::getenv(name);
      before_.emplace_back(name, value == nullptr ? "" : value);
      ::unsetenv(name);
    }
  }
  void TearDown() override {
    for (const auto& [name, value] : before_) value.empty() ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value.c_str(), 1);
    registered = nullptr;
  }

  // A virtual environment as `python3 -m venv` makes them, with the plugin of a provider of this name. Returns the plugin.
  fs::path make_environment(const std::string& name, const std::string& provider) const {
    const fs::path prefix = root_ / name;
    const fs::path package = prefix / "lib" / "python3.11" / "site-packages" / ("onnxruntime_ep_" + provider);
    fs::create_directories(package);
    fs::create_directory_symlink("lib", prefix / "lib64");
    const fs::path file = package / ("libonnxruntime_providers_" + provider + ".so");
    fs::copy_file(some_library(), file);
    return file;
  }
  static fs::path some_library() {
    Dl_info found{};
    ::dladdr(reinterpret_cast<const void*>(&::dladdr), &found);
    return found.dli_fname;
  }
  static std::vector<fs::path> ours(const std::vector<fs::path>& files, const fs::path& root) {
    std::vector<fs::path> out;
    for (const fs::path& f : files) {
      if (f.string().starts_with(root.string())) out.push_back(f);
    }
    return out;
  }

  Registered registered_;
  const testing::TemporaryFolder temporary_;
  const fs::path root_ = fs::canonical(temporary_.path());
  std::vector<std::pair<std::string, std::string>> before_;
};

TEST_F(Plugins, AFolderOfPackagesIsListedOnceWhateverLeadsThere) {
  const fs::path file = make_environment("v", "apple");
  fs::create_directory_symlink(root_ / "v", root_ / "linked");
  ::setenv("VIRTUAL_ENV", (root_ / "linked").c_str(), 1);
  ::setenv("CONDA_PREFIX", (root_ / "v").c_str(), 1);
  fs::create_directories(root_ / "v" / "bin");
  fs::create_symlink("/bin/sh", root_ / "v" / "bin" / "python3");
  ::setenv("PATH", ((root_ / "v" / "bin").string() + ":" + (root_ / "linked" / "bin").string()).c_str(), 1);
  EXPECT_EQ(ours(site_packages(), root_), std::vector<fs::path>{file.parent_path().parent_path()});
}

TEST_F(Plugins, APluginOfAVirtualEnvironmentIsRegisteredOnce) {
  const fs::path file = make_environment("v", "banana");
  ::setenv("VIRTUAL_ENV", (root_ / "v").c_str(), 1);
  ::setenv("SDX_ORT_EP_LIBS", (root_ / "v/lib64/python3.11/site-packages/onnxruntime_ep_banana" / file.filename()).c_str(), 1);
  EXPECT_EQ(ours(plugin_candidates(), root_).size(), 1U);
  const Library& library = a_runtime();
  std::vector<std::string> problems;
  for (int i = 0; i < 3; ++i) plugin_devices(library, "banana", problems);
  EXPECT_EQ(registered_.all.size(), 1U);
  EXPECT_TRUE(problems.empty()) << problems[0];
}

TEST_F(Plugins, AHardLinkIsTheSameFile) {
  const fs::path file = make_environment("v", "cherry");
  const fs::path other = make_environment("w", "cherry");
  fs::remove(other);
  fs::create_hard_link(file, other);
  ::setenv("VIRTUAL_ENV", (root_ / "v").c_str(), 1);
  ::setenv("CONDA_PREFIX", (root_ / "w").c_str(), 1);
  EXPECT_EQ(ours(plugin_candidates(), root_), std::vector<fs::path>{file});
}

TEST_F(Plugins, OfTwoFilesWithOneNameTheFirstIsTaken) {
  const fs::path file = make_environment("v", "damson");
  make_environment("w", "damson");
  ::setenv("VIRTUAL_ENV", (root_ / "v").c_str(), 1);
  ::setenv("CONDA_PREFIX", (root_ / "w").c_str(), 1);
  EXPECT_EQ(ours(plugin_candidates(), root_).size(), 2U);
  std::vector<std::string> problems;
  plugin_devices(a_runtime(), "damson", problems);
  ASSERT_EQ(registered_.all.size(), 1U);
  EXPECT_EQ(registered_.all[0].second, file.string());
  EXPECT_TRUE(problems.empty());
}

TEST_F(Plugins, AFileThatIsRefusedLeavesTheNextItsChance) {
  const fs::path file = make_environment("v", "elder");
  make_environment("w", "elder");
  ::setenv("VIRTUAL_ENV", (root_ / "v").c_str(), 1);
  ::setenv("CONDA_PREFIX", (root_ / "w").c_str(), 1);
  registered_.refused = file.string();
  const Library& library = a_runtime();
  std::vector<std::string> problems;
  for (int i = 0; i < 2; ++i) plugin_devices(library, "elder", problems);
  ASSERT_EQ(registered_.all.size(), 2U);
  EXPECT_NE(registered_.all[0].first, registered_.all[1].first);  // no name comes twice
  ASSERT_EQ(problems.size(), 2U);                                 // once a call
  EXPECT_NE(problems[0].find("it does not like the file"), std::string::npos) << problems[0];
}

TEST_F(Plugins, ASecondOnnxRuntimeOfTheProcessDoesNotGetIt) {
  make_environment("v", "fig");
  ::setenv("VIRTUAL_ENV", (root_ / "v").c_str(), 1);
  std::vector<std::string> problems;
  plugin_devices(a_runtime(), "fig", problems);
  EXPECT_TRUE(problems.empty());
  plugin_devices(a_runtime(), "fig", problems);
  EXPECT_EQ(registered_.all.size(), 1U);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems[0].find("serves one ONNX Runtime only"), std::string::npos) << problems[0];
}

}  // namespace
}  // namespace sdx::ort
