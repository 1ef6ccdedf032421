#include "hub/authorities.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace sdx::hub {
namespace {

TEST(Authorities, TheFirstUsualFileWhereOpenSslHasNone) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "authorities";
  std::filesystem::create_directories(folder);
  const std::string file = (folder / "bundle.pem").string();
  std::ofstream(file) << "certificates";
  const std::array<const char*, 2> usual = {"/nonexistent/bundle.pem", file.c_str()};
  ::unsetenv("SSL_CERT_FILE");
  ::unsetenv("SSL_CERT_DIR");
  EXPECT_EQ(authorities_file("/nonexistent/cert.pem", "/nonexistent/certs", usual), file);
  EXPECT_EQ(authorities_file("/nonexistent/cert.pem", folder.c_str(), usual), "");
  EXPECT_EQ(authorities_file(file.c_str(), "/nonexistent/certs", usual), "");
  EXPECT_EQ(authorities_file("/nonexistent/cert.pem", "/nonexistent/certs", std::span(usual).first(1)), "");
  ::setenv("SSL_CERT_FILE", "/other.pem", 1);
  EXPECT_EQ(authorities_file("/nonexistent/cert.pem", "/nonexistent/certs", usual), "");
  ::unsetenv("SSL_CERT_FILE");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace sdx::hub
