#include "hub/authorities.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <span>
#include <string>

#include "base/system/process.h"
#include "support/temporary_folder.h"

namespace sdx::hub {
namespace {

TEST(Authorities, TheFirstUsualFileWhereOpenSslHasNone) {
  const testing::TemporaryFolder folder;
  const std::string file = folder.write("bundle.pem", "certificates").string();
  const std::array<const char*, 2> usual = {"/nonexistent/bundle.pem", file.c_str()};
  set_environment("SSL_CERT_FILE", nullptr);
  set_environment("SSL_CERT_DIR", nullptr);
  EXPECT_EQ(authorities_file("/nonexistent/cert.pem", "/nonexistent/certs", usual), file);
  EXPECT_EQ(authorities_file("/nonexistent/cert.pem", folder.path().string().c_str(), usual), "");
  EXPECT_EQ(authorities_file(file.c_str(), "/nonexistent/certs", usual), "");
  EXPECT_EQ(authorities_file("/nonexistent/cert.pem", "/nonexistent/certs", std::span(usual).first(1)), "");
  set_environment("SSL_CERT_FILE", "/other.pem");
  EXPECT_EQ(authorities_file("/nonexistent/cert.pem", "/nonexistent/certs", usual), "");
  set_environment("SSL_CERT_FILE", nullptr);
}

}  // namespace
}  // namespace sdx::hub
