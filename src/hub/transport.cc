#include "hub/transport.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <exception>

#include "base/error.h"
#include "base/system/own_library.h"

namespace sdx::hub {
namespace {

void* module_of(void* handle) {
  const auto function = reinterpret_cast<SdxHubModuleFunction>(::dlsym(handle, "sdx_hub_module"));
  const Module* module = function == nullptr ? nullptr : function();
  return module != nullptr && module->version == kModuleVersion ? const_cast<Module*>(module) : nullptr;
}

// Beside whoever contains this code: the program, or a library that was installed without it.
const Module& load() {
  const OwnLibrary library{"libsdx_hub.so",
                           "SDX_HUB_LIB",
                           "downloading",
                           {program_folder(), folder_of(reinterpret_cast<const void*>(&http_get))},
                           {SDX_HUB_FROM_BIN, "../lib/sardonyx", "sardonyx", "."}};
  return *static_cast<const Module*>(load_own_library(library, module_of));
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
