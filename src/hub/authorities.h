#pragma once
// Where a machine keeps the certificates of authorities. OpenSSL knows the place of the system that it was built for; a binary
// with OpenSSL inside also runs on other systems.

#include <array>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>

namespace sdx::hub {

inline constexpr std::array<const char*, 5> kUsualAuthorities = {
    "/etc/ssl/certs/ca-certificates.crt",                 // Debian, Ubuntu, Arch, Alpine
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // Fedora, RHEL
    "/etc/pki/tls/certs/ca-bundle.crt",                   // older ones
    "/etc/ssl/ca-bundle.pem",                             // openSUSE
    "/etc/ssl/cert.pem",                                  // Alpine, Void
};

// The file that OpenSSL should read, or "" where it finds the certificates itself: in the environment's SSL_CERT_FILE or
// SSL_CERT_DIR, or at its own places. Also "" where there are none: OpenSSL then reports that.
inline std::string authorities_file(const char* own_file, const char* own_folder,
                                    std::span<const char* const> usual = kUsualAuthorities) {
  for (const char* variable : {"SSL_CERT_FILE", "SSL_CERT_DIR"}) {
    if (const char* named = std::getenv(variable); named != nullptr && *named != '\0') return "";
  }
  std::error_code ignored;
  if (std::filesystem::exists(own_file, ignored) || std::filesystem::exists(own_folder, ignored)) return "";
  for (const char* file : usual) {
    if (std::filesystem::is_regular_file(file, ignored)) return file;
  }
  return "";
}

}  // namespace sdx::hub
