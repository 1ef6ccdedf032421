#pragma once
// TLS 1.2 and 1.3. Whoever does not use it links no OpenSSL.

#include <filesystem>
#include <memory>

namespace sdx::serve {

class Encryption;

struct TlsFiles {
  std::filesystem::path certificate;  // PEM: the server's, then those that it rests upon
  std::filesystem::path key;          // PEM, without a password
};

// For ServerOptions::encryption. Throws Error(io) where a file cannot be used.
std::shared_ptr<Encryption> tls_encryption(const TlsFiles& files);
// Connections from now on get what the files have become. Throws Error(io), and leaves things as they were. Thread-safe.
void reload(Encryption& tls);

}  // namespace sdx::serve
