#pragma once
// ONNX Runtime's shared library, found and loaded at run time.

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/system/dynlib.h"
#include "providers/interface/provider.h"
#include "providers/ort/functions.h"

namespace sdx::ort {

// Files that may be ONNX Runtime's library, best first: SDX_ORT_LIB alone where set, else settings.ort_library alone where set,
// else beside this program or libsdx, in installed Python packages, and where the system's loader looks. Loads nothing.
std::vector<std::filesystem::path> library_candidates(const ProviderSettings& settings);

// The one to take for an execution provider: the first with a library of that provider beside it, else the first. Throws
// Error(provider_unavailable) saying where was looked.
std::filesystem::path choose_library(const ProviderSettings& settings, std::string_view provider);

// "libonnxruntime_providers_cuda.so"; "" for providers without a library of their own.
std::string provider_library_name(std::string_view provider);

// A loaded library with its environment. Thread-safe.
class Library {
 public:
  // Returns the same object for the same file; it stays loaded until the process ends. Throws Error(provider_unavailable) if it
  // cannot be loaded (with the whole chain of what is missing), is not ONNX Runtime, or is older than 1.17.
  static std::shared_ptr<const Library> open(const std::filesystem::path& file);
  // Wraps the result of its OrtGetApiBase(). `file` keeps it loaded; null: it stays loaded. Exposed for tests.
  static std::shared_ptr<const Library> from(const ApiBase& base, const std::filesystem::path& path,
                                             std::shared_ptr<const DynamicLibrary> file);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const Functions& f() const { return f_; }
  const std::string& version() const { return version_; }
  const std::filesystem::path& path() const { return path_; }
  const c::Env* env() const { return env_; }
  const c::MemoryInfo* cpu() const { return cpu_; }
  c::Allocator* allocator() const { return allocator_; }
  const std::vector<std::string>& providers() const { return providers_; }  // as it calls them
  // Throws Error(code) with the library's own message.
  void check(c::Status* status, ErrorCode code) const;

 private:
  Library() = default;
  std::shared_ptr<const DynamicLibrary> file_;
  Functions f_;
  std::string version_;
  std::filesystem::path path_;
  c::Env* env_ = nullptr;
  c::MemoryInfo* cpu_ = nullptr;
  c::Allocator* allocator_ = nullptr;
  std::vector<std::string> providers_;
};

}  // namespace sdx::ort
