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

// Reads certificate and key for ServerOptions::encryption. Throws Error(io) if a file cannot be used.
std::shared_ptr<Encryption> tls_encryption(const TlsFiles& files);
// Reads the files again, for connections made after the call. On Error(io), nothing changes. Thread-safe.
void reload(Encryption& tls);

}  // namespace sdx::serve
