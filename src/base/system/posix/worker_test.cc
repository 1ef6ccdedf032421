#include "base/system/processes/worker.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <csignal>

namespace sdx {
namespace {

TEST(Worker, AnswersUntilItsChannelCloses) {
  Worker worker([](const Channel& channel) {
    int number = 0;
    while (channel.read(&number, sizeof number)) {
      number *= 2;
      channel.write(&number, sizeof number);
    }
  });
  for (int i = 1; i < 100; ++i) {
    int number = i;
    ASSERT_TRUE(worker.channel().write(&number, sizeof number) && worker.channel().read(&number, sizeof number));
    EXPECT_EQ(number, 2 * i);
  }
}

TEST(Worker, SaysHowItEnded) {
  Worker left([](const Channel&) {});
  char byte = 0;
  EXPECT_FALSE(left.channel().read(&byte, 1));
  EXPECT_EQ(left.ended(), "ended with exit code 0");
  EXPECT_EQ(left.ended(), "is gone");
  Worker killed([](const Channel&) { ::raise(SIGKILL); });
  EXPECT_FALSE(killed.channel().read(&byte, 1));
  EXPECT_EQ(killed.ended(), "ended by signal 9 (Killed); perhaps the machine ran out of memory");
}

// It closes its channel and goes on, so that its end would not come by itself.
TEST(Worker, IsEndedWithItsObject) {
  const auto start = std::chrono::steady_clock::now();
  {
    const Worker stubborn([](const Channel&) {
      for (;;) ::pause();
    });
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

}  // namespace
}  // namespace sdx
