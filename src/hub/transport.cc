#include "hub/transport.h"

#include <array>

#include "base/error.h"
#include "base/text/ascii.h"

namespace sdx::hub {
namespace {

// The state of the C callbacks.
struct Context : CallbackError {
  explicit Context(const Request& r) : request(r) {}
  const Request& request;
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
  const Module& m = load_module<Module>();
  std::vector<ModuleHeader> headers;
  for (const auto& [name, value] : request.headers) headers.push_back({name.c_str(), value.c_str()});
  const std::optional<Url> proxy = proxy_for(request.url);
  const std::string origin = request.url.origin();
  Context context(request);
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
  context.rethrow();
  return {outcome, error.data()};
}

Digest::Digest(const char* algorithm) : state_(load_module<Module>().digest_new(algorithm)) {
  if (state_ == nullptr) fail(ErrorCode::runtime_failure, "OpenSSL offers no {} here", algorithm);
}

Digest::~Digest() {
  std::array<unsigned char, 32> unused{};
  if (state_ != nullptr) load_module<Module>().digest_finish(state_, unused.data());
}

void Digest::update(const void* data, std::size_t size) {
  if (!load_module<Module>().digest_update(state_, data, size))
    fail(ErrorCode::runtime_failure, "OpenSSL failed to compute a checksum");
}

std::string Digest::hex() {
  std::array<unsigned char, 32> bytes{};
  const std::size_t size = load_module<Module>().digest_finish(std::exchange(state_, nullptr), bytes.data());
  if (size == 0) fail(ErrorCode::runtime_failure, "OpenSSL failed to compute a checksum");
  std::string out;
  for (std::size_t i = 0; i < size; ++i) out += fmt::format("{:02x}", bytes[i]);
  return out;
}

}  // namespace sdx::hub
