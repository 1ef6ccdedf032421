// HTTP by cpp-httplib, checksums by OpenSSL: see module_api.h.

#include <httplib.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

#include "base/system/network/received.h"
#include "hub/authorities.h"
#include "hub/module_api.h"

namespace sdx::hub {
namespace {

using Clock = std::chrono::steady_clock;

// cpp-httplib bounds one header line, but neither their number nor the time that they may take.
constexpr std::size_t kMostHeaderBytes = 256 * 1024;

// Ends a request that comes to nothing: too slow, or a header without an end.
class Watch {
 public:
  Watch(httplib::Client& client, const ModuleRequest& request)
      : client_(client), window_(request.timeout_ms), least_(request.stall_bytes), thread_([this] { run(); }) {}
  ~Watch() { finish(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  void opened(int socket) { socket_.store(socket); }
  void header_read() { in_header_.store(false); }
  void got(std::size_t bytes) { body_.fetch_add(bytes, std::memory_order_relaxed); }
  Outcome verdict() const { return verdict_.load(); }

  void finish() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    Clock::time_point since = Clock::now();
    std::size_t before = 0;
    bool was_header = true;
    while (!wake_.wait_for(lock, std::chrono::milliseconds(20), [this] { return done_; })) {
      if (in_header_.load()) {
        if (received_bytes(socket_.load()) > kMostHeaderBytes + 64 * 1024) return end(Outcome::oversized);
        if (Clock::now() - since > window_) return end(Outcome::stalled);
        continue;
      }
      const std::size_t now = body_.load(std::memory_order_relaxed);
      if (was_header || now - before >= least_) {
        was_header = false;
        before = now;
        since = Clock::now();
      } else if (Clock::now() - since > window_) {
        return end(Outcome::stalled);
      }
    }
  }
  void end(Outcome outcome) {
    verdict_.store(outcome);
    client_.stop();
  }

  httplib::Client& client_;
  const std::chrono::milliseconds window_;
  const std::size_t least_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::atomic<int> socket_{-1};
  std::atomic<bool> in_header_{true};
  std::atomic<std::size_t> body_{0};
  std::atomic<Outcome> verdict_{Outcome::ok};
  std::thread thread_;  // last: it uses the others
};

// OpenSSL's number of what is wrong with the server's certificate. Newer releases of cpp-httplib have it in the result,
// older ones in the client.
template <class Client, class Result>
std::string why_refused(const Client& client, const Result& result) {
  if constexpr (requires { result.ssl_backend_error(); }) {
    return std::to_string(result.ssl_backend_error());
  } else {
    return std::to_string(client.get_openssl_verify_result());
  }
}

std::string describe(const httplib::Client& client, const httplib::Result& result) {
  switch (result.error()) {
    case httplib::Error::Connection: return "cannot connect";
    case httplib::Error::ConnectionTimeout: return "no answer to the attempt to connect";
    case httplib::Error::SSLConnection: return "cannot establish a TLS connection";
    case httplib::Error::SSLLoadingCerts:
      return "cannot load the certificates of this machine's authorities (package ca-certificates)";
    case httplib::Error::SSLServerVerification:
      return "the server's certificate is refused (" + why_refused(client, result) + ")";
    case httplib::Error::Read: return "the connection ended too early";
    case httplib::Error::Write: return "cannot send the request";
    default: return "failed: " + httplib::to_string(result.error());
  }
}

Outcome outcome_of(httplib::Error error) {
  switch (error) {
    case httplib::Error::Canceled: return Outcome::stopped;
    case httplib::Error::Read:
    case httplib::Error::Write: return Outcome::broken;
    default: return Outcome::no_connection;
  }
}

bool answer(const ModuleRequest& request, const httplib::Response& response) {
  std::vector<ModuleHeader> headers;
  for (const auto& [name, value] : response.headers) headers.push_back({name.c_str(), value.c_str()});
  return request.on_response(request.context, response.status, headers.data(), headers.size());
}

Outcome get_guarded(const ModuleRequest& request, char* error, std::size_t error_size) {
  httplib::Client client(request.origin);
  if (!client.is_valid()) {
    std::snprintf(error, error_size, "cannot use '%s'", request.origin);
    return Outcome::no_connection;
  }
  client.set_connection_timeout(std::chrono::milliseconds(request.timeout_ms));
  client.set_read_timeout(std::chrono::milliseconds(request.timeout_ms));
  client.set_write_timeout(std::chrono::milliseconds(request.timeout_ms));
  client.set_follow_location(false);  // the caller decides where a token may go
  client.set_url_encode(false);
  client.set_decompress(false);
  client.set_keep_alive(false);
  client.enable_server_certificate_verification(true);
  if (const std::string file = authorities_file(X509_get_default_cert_file(), X509_get_default_cert_dir()); !file.empty()) {
    client.set_ca_cert_path(file.c_str());
  }
  if (request.proxy_host != nullptr) client.set_proxy(request.proxy_host, request.proxy_port);
  httplib::Headers headers;
  for (std::size_t i = 0; i < request.header_count; ++i) headers.emplace(request.headers[i].name, request.headers[i].value);

  Watch watch(client, request);
  client.set_socket_options([&watch](socket_t socket) { watch.opened(socket); });
  const httplib::Result result = client.Get(
      request.path, headers,
      [&](const httplib::Response& response) {
        watch.header_read();
        return answer(request, response);
      },
      [&](const char* data, std::size_t size) {
        watch.got(size);
        return request.on_data(request.context, data, size);
      });
  watch.finish();
  if (result.error() == httplib::Error::Success) return Outcome::ok;
  if (watch.verdict() == Outcome::stalled) {
    std::snprintf(error, error_size, "too little data arrived in %d ms", request.timeout_ms);
    return Outcome::stalled;
  }
  if (watch.verdict() == Outcome::oversized) {
    std::snprintf(error, error_size, "the response's header has more than %zu bytes", kMostHeaderBytes);
    return Outcome::oversized;
  }
  std::snprintf(error, error_size, "%s", describe(client, result).c_str());
  return outcome_of(result.error());
}

Outcome get(const ModuleRequest* request, char* error, std::size_t error_size) {
  try {
    return get_guarded(*request, error, error_size);
  } catch (const std::exception& e) {
    std::snprintf(error, error_size, "%s", e.what());
  } catch (...) {
    std::snprintf(error, error_size, "an unknown failure");
  }
  return Outcome::no_connection;
}

void* digest_new(const char* algorithm) {
  const EVP_MD* kind = EVP_get_digestbyname(algorithm);
  EVP_MD_CTX* context = kind == nullptr ? nullptr : EVP_MD_CTX_new();
  if (context != nullptr && EVP_DigestInit_ex(context, kind, nullptr) != 1) {
    EVP_MD_CTX_free(context);
    return nullptr;
  }
  return context;
}

bool digest_update(void* digest, const void* data, std::size_t size) {
  return EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(digest), data, size) == 1;
}

std::size_t digest_finish(void* digest, unsigned char* out) {
  auto* context = static_cast<EVP_MD_CTX*>(digest);
  unsigned int size = 0;
  unsigned char all[EVP_MAX_MD_SIZE];
  const bool good = EVP_DigestFinal_ex(context, all, &size) == 1 && size <= 32;
  EVP_MD_CTX_free(context);
  if (!good) return 0;
  std::copy(all, all + size, out);
  return size;
}

const Module kModule{module_head<Module>(SDX_VERSION), &get, &digest_new, &digest_update, &digest_finish};

}  // namespace
}  // namespace sdx::hub

extern "C" __attribute__((visibility("default"))) const sdx::ModuleHead* sdx_hub_module() { return &sdx::hub::kModule.head; }
