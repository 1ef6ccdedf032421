#include "base/system/processors.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include "base/system/control_group.h"
#include "base/system/cpu/share.h"
#include "base/thread_pool.h"

namespace sdx {
namespace {

TEST(Processors, CoresThatTheProcessMayNotUseDoNotCount) {
  std::thread([] {
    cpu_set_t set;
    ASSERT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
    int first = 0;
    while (!CPU_ISSET(first, &set)) ++first;
    CPU_ZERO(&set);
    CPU_SET(first, &set);
    ASSERT_EQ(::sched_setaffinity(0, sizeof set, &set), 0);
    EXPECT_EQ(usable_cpus(), 1);
    EXPECT_EQ(cpu_share().allowed, 1);
    EXPECT_GE(cpu_share().cores, 1);
    EXPECT_EQ(ThreadPool().threads(), 1);
  }).join();
}

}  // namespace
}  // namespace sdx
