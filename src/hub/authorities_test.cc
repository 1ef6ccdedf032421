#include "hub/authorities.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <span>
#include <string>

#include "support/temporary_folder.h"

namespace sdx::hub {
namespace {

TEST(Authorities, TheFirstUsualFileWhereOpenSslHasNone) {
  const testing::TemporaryFolder folder;
  const std::string file = folder.write("bundle.pem", "certificates").string();
  const std::array<const char*, 2> usual = {"/nonexistent/bundle.pem", file.c_str()};
  ::unsetenv("SSL_CERT_FILE");
  ::unsetenv("SSL_CERT_DIR");
  EXPECT_EQ(authorities_file("/nonexistent/cert.pem", "/nonexistent/certs", usual), file);
  EXPECT_EQ(authorities_file("/nonexistent/cert.pem", folder.path().c_str(), usual), "");
  EXPECT_EQ(authorities_file(file.c_str(), "/nonexistent/certs", usual), "");
  EXPECT_EQ(authorities_file("/nonexistent/cert.pem", "/nonexistent/certs", std::span(usual).first(1)), "");
  ::setenv("SSL_CERT_FILE", "/other.pem", 1);
  EXPECT_EQ(authorities_file("/nonexistent/cert.pem", "/nonexistent/certs", usual), "");
  ::unsetenv("SSL_CERT_FILE");
}

}  // namespace
}  // namespace sdx::hub
