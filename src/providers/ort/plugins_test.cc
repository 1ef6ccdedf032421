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

struct Device {
  std::string provider, vendor;
  int type;  // OrtHardwareDeviceType
};

// An ONNX Runtime that registers plugins. As the real one it takes a name once.
struct Registered {
  std::vector<std::pair<std::string, std::string>> all;      // name, file
  std::string refused;                                       // files whose path contains it are refused
  std::vector<Device> devices;                               // that it has from the start
  bool named_by_registration = false;                        // each plugin brings a CPU under the name that it got
  std::vector<std::pair<std::string, std::string>> options;  // of the device that was added last
  const c::EpDevice* added = nullptr;
};
Registered* registered = nullptr;

c::Status* ok() { return nullptr; }

c::Status* register_plugin(c::Env*, const char* name, const char* file) {
  registered->all.emplace_back(name, file);
  if (registered->named_by_registration) registered->devices.push_back({name, "Qualcomm", 0});
  if (registered->refused.empty() || std::strstr(file, registered->refused.c_str()) == nullptr) return ok();
  return reinterpret_cast<c::Status*>(registered);
}

const Device& device(const void* opaque) { return *static_cast<const Device*>(opaque); }

c::Status* devices(const c::Env*, const c::EpDevice* const** out, std::size_t* count) {
  static std::vector<const c::EpDevice*> pointers;
  pointers.clear();
  for (const Device& d : registered->devices) pointers.push_back(reinterpret_cast<const c::EpDevice*>(&d));
  *out = pointers.data();
  *count = pointers.size();
  return ok();
}

c::Status* append_devices(c::SessionOptions*, c::Env*, const c::EpDevice* const* chosen, std::size_t, c::Strings keys,
                          c::Strings values, std::size_t count) {
  registered->added = chosen[0];
  registered->options.clear();
  for (std::size_t i = 0; i < count; ++i) registered->options.emplace_back(keys[i], values[i]);
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
  put(303, &devices);
  put(304, &append_devices);
  put(
      307, +[](const c::HardwareDevice* d) { return device(d).type; });
  put(
      309, +[](const c::HardwareDevice* d) { return device(d).vendor.c_str(); });
  put(
      312, +[](const c::EpDevice* d) { return device(d).provider.c_str(); });
  put(
      316, +[](const c::EpDevice* d) { return reinterpret_cast<const c::HardwareDevice*>(d); });
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
  fs::path make_environment(const std::string& name, const std::string& provider,
                            const std::string& packages = "onnxruntime_ep_") const {
    const fs::path prefix = root_ / name;
    const fs::path package = prefix / "lib" / "python3.11" / "site-packages" / (packages + provider);
    fs::create_directories(package);
    fs::create_directory_symlink("lib", prefix / "lib64");
    fs::path file = package / ("libonnxruntime_providers_" + provider + ".so");
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

TEST_F(Plugins, QualcommsPackageIsFoundAndGetsItsProvidersName) {
  const fs::path file = make_environment("v", "qnn", "onnxruntime_");
  fs::create_directories(file.parent_path().parent_path() / "onnxruntime_qnn-2.7.0.dist-info");
  ::setenv("VIRTUAL_ENV", (root_ / "v").c_str(), 1);
  EXPECT_EQ(ours(plugin_candidates(), root_), std::vector<fs::path>{file});
  EXPECT_TRUE(has_plugin("qnn"));
  registered_.named_by_registration = true;
  std::vector<std::string> problems;
  const std::vector<PluginDevice> found = plugin_devices(a_runtime(), "qnn", problems);
  ASSERT_EQ(registered_.all.size(), 1U);
  EXPECT_EQ(registered_.all[0].first, "QNNExecutionProvider");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kind, "CPU");
}

TEST_F(Plugins, TheDevicesOfASecondFileCountWhateverNameItGot) {
  const fs::path file = make_environment("v", "qnn", "onnxruntime_");
  make_environment("w", "qnn", "onnxruntime_");
  ::setenv("VIRTUAL_ENV", (root_ / "v").c_str(), 1);
  ::setenv("CONDA_PREFIX", (root_ / "w").c_str(), 1);
  registered_.refused = file.string();
  std::vector<std::string> problems;
  const Library& library = a_runtime();
  plugin_devices(library, "qnn", problems);
  ASSERT_EQ(registered_.all.size(), 2U);
  registered_.devices = {{registered_.all[1].first, "Qualcomm", 2}, {"WebGpuExecutionProvider", "AMD", 1}};
  const std::vector<PluginDevice> found = plugin_devices(library, "qnn", problems);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kind, "NPU");
}

// ONNX Runtime resolves a relative path from its own folder.
TEST_F(Plugins, ARelativePathIsMeantFromTheCurrentFolder) {
  const fs::path file = make_environment("v", "grape");
  ::setenv("SDX_ORT_EP_LIBS", fs::relative(file).c_str(), 1);
  EXPECT_EQ(ours(plugin_candidates(), root_), std::vector<fs::path>{file});
  ::setenv("SDX_ORT_EP_LIBS", "nowhere/libonnxruntime_providers_grape.so", 1);
  EXPECT_EQ(plugin_candidates()[0], fs::current_path() / "nowhere/libonnxruntime_providers_grape.so");
}

TEST_F(Plugins, APluginThatTheProgramRegisteredItselfIsNotRegisteredAgain) {
  make_environment("v", "webgpu");
  ::setenv("VIRTUAL_ENV", (root_ / "v").c_str(), 1);
  registered_.devices = {{"WebGpuExecutionProvider", "AMD", 1}};
  std::vector<std::string> problems;
  EXPECT_EQ(plugin_devices(a_runtime(), "webgpu", problems).size(), 1U);
  EXPECT_TRUE(registered_.all.empty());
}

TEST_F(Plugins, APluginThatAnotherCopyOfOnnxRuntimeHasIsLeftAlone) {
  const fs::path file = make_environment("v", "hazel");
  ::setenv("VIRTUAL_ENV", (root_ / "v").c_str(), 1);
  void* const loaded = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL);
  ASSERT_NE(loaded, nullptr) << ::dlerror();
  std::vector<std::string> problems;
  plugin_devices(a_runtime(), "hazel", problems);
  ::dlclose(loaded);
  EXPECT_TRUE(registered_.all.empty());
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems[0].find("another ONNX Runtime has it in this process"), std::string::npos) << problems[0];
}

TEST_F(Plugins, AnNpuComesBeforeAGpuAndACpu) {
  std::vector<PluginDevice> all(3);
  all[0].kind = "CPU";
  all[1].kind = "GPU";
  all[2].kind = "NPU";
  EXPECT_EQ(choose_device(all, ""), &all[2]);
  EXPECT_EQ(choose_device(all, "GPU"), &all[1]);
  all.pop_back();
  EXPECT_EQ(choose_device(all, ""), &all[1]);
  EXPECT_EQ(choose_device(all, "NPU"), nullptr);
}

// Where the NPU is simulated the plugin does not choose among its libraries by itself.
TEST_F(Plugins, TheSimulatorOfTheNpuIsChosenUnlessTheUserDoes) {
  using Options = std::vector<std::pair<std::string, std::string>>;
  registered_.devices = {{"QNNExecutionProvider", "AMD", 0}};
  const Library& library = a_runtime();
  append_plugin(library, nullptr, "qnn", {});
  EXPECT_EQ(registered_.options, (Options{{"backend_type", "htp"}}));
  const Options own{{"backend_path", "/opt/libQnnCpu.so"}};
  append_plugin(library, nullptr, "qnn", own);
  EXPECT_EQ(registered_.options, own);
  registered_.devices.push_back({"QNNExecutionProvider", "Qualcomm", 2});
  append_plugin(library, nullptr, "qnn", {});
  EXPECT_EQ(static_cast<const void*>(registered_.added), &registered_.devices[1]);
  EXPECT_TRUE(registered_.options.empty());
}

}  // namespace
}  // namespace sdx::ort
