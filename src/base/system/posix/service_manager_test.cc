#include "base/system/network/service_manager.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string>

#include "base/system/process.h"

namespace sdx {
namespace {

// A variable of the environment while a test runs.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { set_environment(name, value.c_str()); }
  ~Variable() { set_environment(name_, nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(ServiceManager, SocketsOfAnotherProcessAreNotOurs) {
  const Variable count("LISTEN_FDS", "1"), process("LISTEN_PID", std::to_string(process_id() + 1));
  EXPECT_TRUE(inherited_sockets().empty());
  EXPECT_EQ(std::getenv("LISTEN_FDS"), nullptr);
}

TEST(ServiceManager, WatchdogOfThisProcess) {
  const Variable interval("WATCHDOG_USEC", "3000000");
  EXPECT_EQ(watchdog_interval(), std::chrono::seconds(3));
  const Variable process("WATCHDOG_PID", std::to_string(process_id() + 1));
  EXPECT_EQ(watchdog_interval().count(), 0);
}

TEST(ServiceManager, WatchdogNeedsANumber) {
  for (const char* text : {"", "-5", "3s"}) {
    const Variable interval("WATCHDOG_USEC", text);
    EXPECT_EQ(watchdog_interval().count(), 0) << text;
  }
}

TEST(ServiceManager, StatesReachItsSocket) {
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM, 0);
  ASSERT_GE(socket, 0);
  const std::string name = "@sdx-test-" + std::to_string(process_id());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data() + 1, name.size() - 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), size), 0);
  const Variable variable("NOTIFY_SOCKET", name);
  notify_service_manager("READY=1");
  char text[32] = "";
  EXPECT_EQ(::recv(socket, text, sizeof text, MSG_DONTWAIT), 7);
  EXPECT_STREQ(text, "READY=1");
  ::close(socket);
}

}  // namespace
}  // namespace sdx
