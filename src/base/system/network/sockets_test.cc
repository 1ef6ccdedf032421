#include "base/system/network/sockets.h"

#include <gtest/gtest.h>

#include "base/system/network/service_manager.h"

namespace sdx {
namespace {

TEST(Sockets, LoopbackIsOfThisMachineAlone) {
  for (const char* address : {"127.0.0.1", "127.8.9.10", "::1", "0:0:0:0:0:0:0:1"}) EXPECT_TRUE(is_loopback(address)) << address;
  for (const char* address : {"0.0.0.0", "128.0.0.1", "::", "::2", "localhost", "", "127.0.0.1.5"})
    EXPECT_FALSE(is_loopback(address)) << address;
}

TEST(Sockets, NoSocketHasNoAddress) {
  EXPECT_EQ(socket_address(-1), "");
  EXPECT_EQ(received_bytes(-1), 0u);
}

TEST(Sockets, TheLimitOfDescriptorsStaysRaised) {
  const std::size_t most = raise_descriptor_limit();
  EXPECT_GE(most, 256u);
  EXPECT_EQ(raise_descriptor_limit(), most);
}

}  // namespace
}  // namespace sdx
