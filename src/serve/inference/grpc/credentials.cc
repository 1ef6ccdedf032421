#include "credentials.h"

#include <grpc/grpc_security.h>
#include <grpc/slice.h>

#include "calls.h"

namespace sdx::serve {
namespace {

using KeyError = std::function<std::optional<GrpcError>(std::string_view)>;

// The argument of gRPC's C callbacks.
struct Source {
  std::shared_ptr<const Certificates> certificates;
  std::shared_ptr<const Certificates::Pair> given;  // gRPC asks from many threads, but one at a time
};

grpc_ssl_certificate_config_reload_status fetch(void* data, grpc_ssl_server_certificate_config** config) {
  auto& source = *static_cast<Source*>(data);
  const auto pair = source.certificates->now();
  if (pair == source.given) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  const grpc_ssl_pem_key_cert_pair pem{pair->key.c_str(), pair->certificate.c_str()};
  // gRPC 1.51 wants certificates to check clients with even where it asks clients for none.
  *config = ::grpc_ssl_server_certificate_config_create(pair->certificate.c_str(), &pem, 1);
  if (*config == nullptr) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_FAIL;
  source.given = pair;
  return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

std::string_view text_of(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

bool asks_for_health(std::string_view path) {
  return path.starts_with("/grpc.health.v1.Health/") || path == "/inference.GRPCInferenceService/ServerLive" ||
         path == "/inference.GRPCInferenceService/ServerReady";
}

void check_key(void* state, grpc_auth_context*, const grpc_metadata* metadata, std::size_t count,
               grpc_process_auth_metadata_done_cb done, void* data) {
  const auto& key_error = *static_cast<const KeyError*>(state);
  std::string_view authorization, path;
  for (std::size_t i = 0; i < count; ++i) {
    if (text_of(metadata[i].key) == "authorization" && authorization.empty()) authorization = text_of(metadata[i].value);
    if (text_of(metadata[i].key) == ":path") path = text_of(metadata[i].value);
  }
  std::optional<GrpcError> error;
  if (!asks_for_health(path)) error = key_error(authorization);
  const grpc::Status status = error ? status_of(*error) : grpc::Status::OK;
  done(data, nullptr, 0, nullptr, 0, static_cast<grpc_status_code>(status.error_code()),
       error ? status.error_message().c_str() : nullptr);
}

class TlsCredentials final : public grpc::ServerCredentials {
 public:
  TlsCredentials(std::shared_ptr<const Certificates> certificates, KeyError key_error)
      : source_{std::move(certificates), nullptr}, key_error_(std::move(key_error)) {
    auto* const options = ::grpc_ssl_server_credentials_create_options_using_config_fetcher(
        GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE, fetch, &source_);
    credentials_ = ::grpc_ssl_server_credentials_create_with_options(options);  // which owns the options
    if (key_error_) ::grpc_server_credentials_set_auth_metadata_processor(credentials_, {check_key, nullptr, &key_error_});
  }
  ~TlsCredentials() override { ::grpc_server_credentials_release(credentials_); }
  TlsCredentials(const TlsCredentials&) = delete;
  TlsCredentials& operator=(const TlsCredentials&) = delete;

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}  // it has its own

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return ::grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  Source source_;
  KeyError key_error_;
  grpc_server_credentials* credentials_ = nullptr;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> tls_credentials(std::shared_ptr<const Certificates> certificates, KeyError key_error) {
  return std::make_shared<TlsCredentials>(std::move(certificates), std::move(key_error));
}

}  // namespace sdx::serve
