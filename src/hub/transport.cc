#include "hub/transport.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <filesystem>

#include "base/error.h"

namespace sdx::hub {
namespace {

namespace fs = std::filesystem;

// Beside whoever contains this code: the program, or a library that was installed without it.
std::vector<fs::path> candidates() {
  std::vector<fs::path> out;
  if (const char* named = std::getenv("SDX_HUB_LIB"); named != nullptr && *named != '\0') return {named};
  std::vector<fs::path> starts;
  std::error_code ignored;
  starts.push_back(fs::read_symlink("/proc/self/exe", ignored).parent_path());
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&http_get), &info) != 0 && info.dli_fname != nullptr) {
    starts.push_back(fs::absolute(info.dli_fname, ignored).parent_path());
  }
  for (const fs::path& start : starts) {
    for (const char* folder : {SDX_HUB_FROM_BIN, "../lib/sardonyx", "sardonyx", "."}) {
      fs::path path = (start / folder / "libsdx_hub.so").lexically_normal();
      if (std::find(out.begin(), out.end(), path) == out.end()) out.push_back(std::move(path));
    }
  }
  return out;
}

const Module& load() {
  std::string tried;
  for (const fs::path& path : candidates()) {
    std::error_code ignored;
    if (!fs::is_regular_file(path, ignored)) {
      tried += "\n  " + path.string() + ": not there";
      continue;
    }
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      tried += "\n  " + std::string(::dlerror());
      continue;
    }
    const auto function = reinterpret_cast<SdxHubModuleFunction>(::dlsym(library, "sdx_hub_module"));
    const Module* module = function == nullptr ? nullptr : function();
    if (module != nullptr && module->version == kModuleVersion) return *module;
    tried += "\n  " + path.string() + ": of another version";
  }
  fail(ErrorCode::io, "downloading needs libsdx_hub.so, which cannot be loaded (SDX_HUB_LIB may name it); tried:{}", tried);
}

const Module& module() {
  static const Module& loaded = load();
  return loaded;
}

bool same_word(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

// What the C callbacks see.
struct Context {
  const Request& request;
  std::exception_ptr thrown;

  template <class F>
  bool guarded(const F& f) {
    try {
      return f();
    } catch (...) {
      thrown = std::current_exception();
      return false;
    }
  }
};

bool on_response(void* raw, int status, const ModuleHeader* headers, std::size_t count) {
  auto& context = *static_cast<Context*>(raw);
  return context.guarded([&] {
    Response response{status, {}};
    for (std::size_t i = 0; i < count; ++i) response.headers.emplace_back(headers[i].name, headers[i].value);
    return context.request.on_response(response);
  });
}

bool on_data(void* raw, const char* data, std::size_t size) {
  auto& context = *static_cast<Context*>(raw);
  return context.guarded([&] { return context.request.on_data(data, size); });
}

}  // namespace

std::string Response::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (same_word(key, name)) return value;
  }
  return "";
}

Result http_get(const Request& request) {
  const Module& m = module();
  std::vector<ModuleHeader> headers;
  for (const auto& [name, value] : request.headers) headers.push_back({name.c_str(), value.c_str()});
  const std::optional<Url> proxy = proxy_for(request.url);
  const std::string origin = request.url.origin();
  Context context{request, nullptr};
  ModuleRequest raw;
  raw.origin = origin.c_str();
  raw.path = request.url.path.c_str();
  raw.proxy_host = proxy ? proxy->host.c_str() : nullptr;
  raw.proxy_port = proxy ? proxy->port : 0;
  raw.headers = headers.data();
  raw.header_count = headers.size();
  raw.timeout_ms = static_cast<int>(request.timeout.count());
  raw.context = &context;
  raw.on_response = &on_response;
  raw.on_data = &on_data;
  std::array<char, 512> error{};
  const Outcome outcome = m.get(&raw, error.data(), error.size());
  if (context.thrown) std::rethrow_exception(context.thrown);
  return {outcome, error.data()};
}

Digest::Digest(const char* algorithm) : state_(module().digest_new(algorithm)) {
  if (state_ == nullptr) fail(ErrorCode::runtime_failure, "OpenSSL offers no {} here", algorithm);
}

Digest::~Digest() {
  std::array<unsigned char, 32> unused{};
  if (state_ != nullptr) module().digest_finish(state_, unused.data());
}

void Digest::update(const void* data, std::size_t size) {
  if (!module().digest_update(state_, data, size)) fail(ErrorCode::runtime_failure, "OpenSSL failed to compute a checksum");
}

std::string Digest::hex() {
  std::array<unsigned char, 32> bytes{};
  const std::size_t size = module().digest_finish(std::exchange(state_, nullptr), bytes.data());
  if (size == 0) fail(ErrorCode::runtime_failure, "OpenSSL failed to compute a checksum");
  std::string out;
  for (std::size_t i = 0; i < size; ++i) out += fmt::format("{:02x}", bytes[i]);
  return out;
}

}  // namespace sdx::hub
