#include "base/system/interruption.h"

#include <gtest/gtest.h>

namespace sdx {
namespace {

// Wants to stop when it is asked for the `at`-th time.
struct Asked {
  int at = 0, times = 0;
  static bool ask(void* self) {
    auto& a = *static_cast<Asked*>(self);
    return ++a.times == a.at;
  }
};

TEST(Interruption, EndsWhatTheThreadComputesAndIsNotAskedAgain) {
  Asked asked{2};
  Interruption here(&Asked::ask, &asked);
  const InterruptionScope scope(&here);
  int checks = 0;
  const auto compute = [&] {
    for (;; ++checks) check_interruption();
  };
  EXPECT_THROW(compute(), Error);
  EXPECT_EQ(asked.times, 2);
  EXPECT_GT(checks, asked.times);  // not at every check
  EXPECT_THROW(check_interruption(), Error);
  EXPECT_EQ(asked.times, 2);
}

TEST(Interruption, IsTheInnermostScopes) {
  check_interruption();
  Asked outer{1}, inner{0};
  Interruption here(&Asked::ask, &outer), nested(&Asked::ask, &inner);
  const InterruptionScope scope(&here);
  {
    const InterruptionScope within(&nested);
    while (inner.times < 2) check_interruption();
    EXPECT_EQ(outer.times, 0);
    const InterruptionScope none(nullptr);
    EXPECT_FALSE(interrupted());
  }
  while (!interrupted()) {
  }
  EXPECT_EQ(outer.times, 1);
}

}  // namespace
}  // namespace sdx
