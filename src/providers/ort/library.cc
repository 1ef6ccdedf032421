#include "providers/ort/library.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/log.h"
#include "base/system/files/library_name.h"
#include "base/system/mapped_file.h"
#include "providers/vendor/search.h"

namespace sdx::ort {
namespace {

namespace fs = std::filesystem;

void log_message(void*, int severity, const char*, const char*, const char*, const char* message) {
  // The library's warnings are mostly about itself; failures are returned as statuses and reported there.
  const log::Level level = severity <= 1 ? log::Level::debug : severity <= 3 ? log::Level::info : log::Level::error;
  if (level >= log::level()) log::write(level, fmt::format("onnxruntime: {}", message));
}

// Sardonyx's own library of that name (src/dropin) tells itself by this symbol. It would load itself by way of this provider.
constexpr const char kOwnMark[] = "sdx_dropin_library";

// It is a tenth of ONNX Runtime's size at most: larger files are not read.
bool is_our_own(const fs::path& file) {
  constexpr std::uintmax_t kLargest = std::uintmax_t{8} << 20;
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  if (error || size > kLargest) return false;
  try {
    const auto mapped = MappedFile::open(file, 0);
    const auto bytes = mapped->bytes();
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()).find(kOwnMark) != std::string_view::npos;
  } catch (const Error&) {
    return false;
  }
}

std::mutex g_mutex;

// Never destroyed: threads and thread-local data of the library do not survive its being unloaded, and loading it takes some 20
// ms.
std::map<std::string, std::shared_ptr<const Library>>& open_libraries() {
  static auto* const map = new std::map<std::string, std::shared_ptr<const Library>>;
  return *map;
}

}  // namespace

std::vector<fs::path> library_candidates(const ProviderSettings& settings) {
  if (const char* v = std::getenv("SDX_ORT_LIB"); v != nullptr && *v != 0) return {v};
  if (!settings.ort_library.empty()) return {settings.ort_library};
  std::vector<fs::path> out;
  for (const fs::path& folder : program_folders()) add_library_of(folder, "onnxruntime", out);
  for (const fs::path& site : site_packages()) add_library_of(site / "onnxruntime" / "capi", "onnxruntime", out);
  for (const std::string& name : {std::string("libonnxruntime.so.1"), shared_library_name("onnxruntime")}) {
    if (const std::string found = find_library(name); !found.empty()) out.emplace_back(found);
  }
  std::erase_if(out, is_our_own);
  return out;
}

std::string provider_library_name(std::string_view provider) {
  for (const std::string_view p : {"cuda", "tensorrt", "rocm", "migraphx", "openvino", "vitisai", "dnnl"}) {
    if (p == provider) return shared_library_name(fmt::format("onnxruntime_providers_{}", provider));
  }
  return "";
}

fs::path choose_library(const ProviderSettings& settings, std::string_view provider) {
  if (!can_load_libraries()) fail(ErrorCode::provider_unavailable, "ONNX Runtime cannot be used: {}", why_no_libraries());
  const std::vector<fs::path> candidates = library_candidates(settings);
  if (candidates.empty()) {
    fail(ErrorCode::provider_unavailable,
         "{} was looked for beside this program, in installed Python packages and on the loader's search path",
         shared_library_name("onnxruntime"));
  }
  const std::string own = provider_library_name(provider);
  std::error_code none;
  for (const fs::path& c : candidates) {
    if (!own.empty() && fs::exists(c.parent_path() / own, none)) return c;
  }
  if (!fs::exists(candidates.front(), none)) {
    fail(ErrorCode::provider_unavailable, "'{}', given by SDX_ORT_LIB or the configuration, does not exist",
         candidates.front().string());
  }
  return candidates.front();
}

std::shared_ptr<const Library> Library::open(const fs::path& file) {
  const std::lock_guard lock(g_mutex);
  std::error_code none;
  const fs::path resolved = fs::exists(file, none) ? fs::canonical(file, none) : file;
  std::shared_ptr<const Library>& slot = open_libraries()[resolved.string()];
  if (slot) return slot;
  const auto loaded = DynamicLibrary::open(resolved);
  if (loaded->symbol(kOwnMark) != nullptr) {
    fail(ErrorCode::provider_unavailable, "'{}' is Sardonyx itself under ONNX Runtime's name; name a real ONNX Runtime",
         resolved.string());
  }
  const auto get = reinterpret_cast<const ApiBase* (*)()>(loaded->symbol("OrtGetApiBase"));
  if (get == nullptr) {
    fail(ErrorCode::provider_unavailable, "'{}' has no function OrtGetApiBase: it is not an ONNX Runtime library",
         resolved.string());
  }
  slot = from(*get(), resolved, loaded);
  log::info("ONNX Runtime {} is loaded from '{}'", slot->version(), resolved.string());
  return slot;
}

std::shared_ptr<const Library> Library::from(const ApiBase& base, const fs::path& path,
                                             std::shared_ptr<const DynamicLibrary> file) {
  const std::shared_ptr<Library> made(new Library);
  made->path_ = path;
  made->file_ = std::move(file);
  made->version_ = base.version();
  // A library complains about each version that it lacks: its own version's second part is the newest it has.
  int version = kNewestVersion;
  if (made->version_.starts_with("1.")) version = std::clamp(std::atoi(made->version_.c_str() + 2), 1, kNewestVersion);
  const void* const* table = nullptr;
  while (version >= kOldestVersion && (table = base.get_api(static_cast<std::uint32_t>(version))) == nullptr) --version;
  if (table == nullptr) {
    fail(ErrorCode::provider_unavailable, "'{}' is ONNX Runtime {}; 1.17 or newer is needed", path.string(), made->version_);
  }
  made->f_ = functions_of(table, version);
  const int severity = log::level() == log::Level::debug ? 1 : 2;
  made->check(made->f_.create_env(log_message, nullptr, severity, "sdx", &made->env_), ErrorCode::provider_unavailable);
  made->check(made->f_.create_cpu_memory_info(1, 0, &made->cpu_), ErrorCode::provider_unavailable);
  made->check(made->f_.default_allocator(&made->allocator_), ErrorCode::provider_unavailable);
  char** names = nullptr;
  int count = 0;
  made->check(made->f_.available_providers(&names, &count), ErrorCode::provider_unavailable);
  made->providers_.assign(names, names + count);
  made->check(made->f_.release_available_providers(names, count), ErrorCode::internal);
  return made;
}

Library::~Library() {
  if (cpu_ != nullptr) f_.release_memory_info(cpu_);
  if (env_ != nullptr) f_.release_env(env_);
}

void Library::check(c::Status* status, ErrorCode code) const {
  if (status == nullptr) return;
  const std::string message = f_.get_error_message(status);
  f_.release_status(status);
  fail(code, "ONNX Runtime {}: {}", version_, message);
}

}  // namespace sdx::ort
