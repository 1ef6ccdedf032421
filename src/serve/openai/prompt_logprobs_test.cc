#include "serve/openai/prompt_logprobs.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "serve/openai/error.h"

namespace sdx::serve::openai {
namespace {

TEST(PromptLogprobs, FewWaitForTheirTurn) {
  Line line;
  std::optional<Turn> first(std::in_place, line, [] { return false; });
  std::atomic<bool> leave{false};
  std::atomic<int> waiting{0}, left{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, asked = false]() mutable {
      try {
        const Turn turn(line, [&] {
          if (!std::exchange(asked, true)) ++waiting;
          return leave.load();
        });
      } catch (const Error& error) {
        if (error.code() == ErrorCode::cancelled) ++left;
      }
    });
  }
  while (waiting < 4) std::this_thread::yield();
  try {
    const Turn turn(line, [] { return false; });
    ADD_FAILURE() << "one too many waits";
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status, 503);
    EXPECT_EQ(error.code, "overloaded");
  }
  leave = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(left, 4);
  first.reset();
  EXPECT_EQ(line.length, 0);
  const Turn turn(line, [] { return false; });
  EXPECT_EQ(line.length, 1);
}

}  // namespace
}  // namespace sdx::serve::openai
