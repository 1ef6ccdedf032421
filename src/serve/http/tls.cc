#include "serve/http/tls.h"

#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <mutex>

#include "base/error.h"
#include "serve/http/transport.h"

namespace sdx::serve {
namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;

// Chooses HTTP/1.1 among the client's offers (names, each after a byte with its length).
int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* size, const unsigned char* offered, unsigned int bytes,
                    void*) {
  static constexpr unsigned char ours[] = "\x08http/1.1";
  unsigned char* found = nullptr;
  if (::SSL_select_next_proto(&found, size, ours, sizeof ours - 1, offered, bytes) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

std::shared_ptr<ssl::context> make_context(const TlsFiles& files) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX* const raw = context->native_handle();
  ::SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  ::SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  ::SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS);  // idle connections need none
  ::SSL_CTX_set_alpn_select_cb(raw, choose_protocol, nullptr);
  SystemError error;
  // Without this, OpenSSL would ask for the password on the terminal.
  context->set_password_callback([](std::size_t, ssl::context::password_purpose) { return std::string(); }, error);
  context->use_certificate_chain_file(files.certificate.string(), error);
  if (error) {
    fail(ErrorCode::io, "the certificate {} cannot be used: {}; expected a PEM file", files.certificate.string(),
         error.message());
  }
  context->use_private_key_file(files.key.string(), ssl::context::pem, error);
  if (error) {
    fail(ErrorCode::io,
         "the private key {} cannot be used: {}; expected a PEM file without a password that matches the certificate",
         files.key.string(), error.message());
  }
  return context;
}

class TlsTransport : public Transport {
 public:
  TlsTransport(Tcp::socket socket, std::shared_ptr<ssl::context> context)
      : Transport(std::move(socket)), context_(std::move(context)), stream_(socket_, *context_) {}

  void handshake(Done done) override {
    stream_.async_handshake(ssl::stream_base::server, [done = std::move(done)](SystemError error) { done(error, 0); });
  }
  void read_some(asio::mutable_buffer into, Done done) override { stream_.async_read_some(into, std::move(done)); }
  void write(const Buffers& bytes, Done done) override { asio::async_write(stream_, bytes, std::move(done)); }
  void end_writing(std::shared_ptr<void> keep) override {
    stream_.async_shutdown([keep = std::move(keep)](SystemError) {});
  }
  bool needs_handshake() const noexcept override { return true; }

 private:
  std::shared_ptr<ssl::context> context_;
  ssl::stream<Tcp::socket&> stream_;
};

class TlsEncryption : public Encryption {
 public:
  explicit TlsEncryption(TlsFiles files) : files_(std::move(files)), context_(make_context(files_)) {}

  std::unique_ptr<Transport> transport(Tcp::socket socket) override {
    const std::lock_guard lock(mutex_);
    return std::make_unique<TlsTransport>(std::move(socket), context_);
  }
  void reload() {
    auto fresh = make_context(files_);
    const std::lock_guard lock(mutex_);
    context_ = std::move(fresh);
  }

 private:
  const TlsFiles files_;
  std::mutex mutex_;
  std::shared_ptr<ssl::context> context_;
};

}  // namespace

std::shared_ptr<Encryption> tls_encryption(const TlsFiles& files) { return std::make_shared<TlsEncryption>(files); }

void reload(Encryption& tls) {
  if (auto* const ours = dynamic_cast<TlsEncryption*>(&tls)) ours->reload();
}

}  // namespace sdx::serve
