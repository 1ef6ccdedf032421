#pragma once
// TLS for gRPC, with certificates that can be replaced while the server runs.

#include <grpcpp/security/server_credentials.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "serve/grpc_api.h"

namespace sdx::serve {

// The certificate in use, with its key: both PEM. Thread-safe.
class Certificates {
 public:
  struct Pair {
    std::string certificate, key;
  };
  explicit Certificates(Pair pair) : pair_(std::make_shared<const Pair>(std::move(pair))) {}
  void replace(Pair pair) {
    const std::lock_guard lock(mutex_);
    pair_ = std::make_shared<const Pair>(std::move(pair));
  }
  std::shared_ptr<const Pair> now() const {
    const std::lock_guard lock(mutex_);
    return pair_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Pair> pair_;
};

// Asks `certificates` at every handshake. `key_error` checks the metadata "authorization" of a call before its message is read;
// it may be empty.
std::shared_ptr<grpc::ServerCredentials> tls_credentials(
    std::shared_ptr<const Certificates> certificates,
    std::function<std::optional<GrpcError>(std::string_view authorization)> key_error);

}  // namespace sdx::serve
