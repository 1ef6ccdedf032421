#pragma once
// OpenVINO's C library, found and loaded at run time.

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <sdx/dtype.hpp>

#include "base/error.h"
#include "base/system/dynlib.h"
#include "providers/interface/provider.h"
#include "providers/openvino/functions.h"

namespace sdx::openvino {

// Files that may be OpenVINO's C library, best first: SDX_OPENVINO_LIB alone where set, else settings.openvino_library alone
// where set, else beside this program or libsdx, in the Python package `openvino`, below $INTEL_OPENVINO_DIR, and where the
// system's loader looks. Loads nothing.
std::vector<std::filesystem::path> library_candidates(const ProviderSettings& settings);

// The first of them. Throws Error(provider_unavailable) saying where was looked.
std::filesystem::path choose_library(const ProviderSettings& settings);

struct Device {
  std::string name;       // "CPU", "GPU.0"
  std::string full_name;  // "Intel(R) Arc(TM) A770 Graphics"
};

// A loaded library with its core. Thread-safe. Stays loaded until the process ends: its own threads do not survive being
// unloaded.
class Library {
 public:
  // Returns the same object for the same file. Throws Error(provider_unavailable) if it cannot be loaded (with the whole chain of
  // what is missing), is not OpenVINO, or lacks a function that is needed.
  static std::shared_ptr<const Library> open(const std::filesystem::path& file);

  const Functions& f() const { return f_; }
  const std::string& version() const { return version_; }  // "2025.3.0"
  const std::filesystem::path& path() const { return path_; }
  const c::Core* core() const { return core_; }
  // The devices that the plugins see at the time of the call. Loads the plugins: some 100 ms the first time.
  std::vector<Device> devices() const;

  // Its number for an element type, and back; -1 and DataType::undefined where values of that type do not cross.
  int element_type(DataType type) const;
  DataType data_type(int type) const;

  // The message of the last failure on this thread.
  std::string message(int status) const;
  // Throws Error(code) with the library's own message unless `status` is kOk.
  void check(int status, ErrorCode code) const;

 private:
  Library() = default;
  void find_element_types();
  std::shared_ptr<const DynamicLibrary> file_;
  Functions f_;
  std::string version_;
  std::filesystem::path path_;
  c::Core* core_ = nullptr;
  std::vector<std::pair<DataType, int>> types_;
};

}  // namespace sdx::openvino
