#include "base/system/control_group.h"

#include <gtest/gtest.h>

#include <string>

#include "support/temporary_folder.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;

// A file system as a process in a container sees it.
class ControlGroup : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const { temporary_.write(path, text); }
  void version_2(const std::string& group, const std::string& top = "/") const {
    write("proc/self/cgroup", "0::" + group + "\n");
    write("proc/self/mountinfo", "21 28 0:20 / /sys rw,nosuid - sysfs sysfs rw\n30 21 0:26 " + top +
                                     " /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n");
  }
  void version_1(const std::string& group, const std::string& top) const {
    write("proc/self/cgroup", "12:memory:" + group + "\n4:cpu,cpuacct:" + group + "\n3:cpuset:/other\n0::/unified\n");
    write("proc/self/mountinfo", "31 30 0:27 " + top + " /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n33 30 0:29 " + top +
                                     " /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n34 30 0:30 " + top +
                                     " /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  }

  const testing::TemporaryFolder temporary_;
  const fs::path& root_ = temporary_.path();
};

TEST_F(ControlGroup, NothingIsKnownWhereNothingIsMounted) {
  EXPECT_EQ(cpu_quota(root_), std::nullopt);
  EXPECT_EQ(memory_left(root_), std::nullopt);
  EXPECT_TRUE(control_groups("cpu", root_).empty());
}

TEST_F(ControlGroup, Version2InAContainer) {
  version_2("/");
  EXPECT_EQ(cpu_quota(root_), std::nullopt);
  write("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(cpu_quota(root_), std::nullopt);
  write("sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_EQ(cpu_quota(root_), 1.5);
  write("sys/fs/cgroup/memory.max", "max\n");
  write("sys/fs/cgroup/memory.current", "1000\n");
  EXPECT_EQ(memory_left(root_), std::nullopt);
  write("sys/fs/cgroup/memory.max", "5000\n");
  EXPECT_EQ(memory_left(root_), 4000U);
}

TEST_F(ControlGroup, TheTightestOfTheGroupsAroundCounts) {
  version_2("/user.slice/app.service/worker");
  write("sys/fs/cgroup/user.slice/cpu.max", "200000 100000\n");
  write("sys/fs/cgroup/user.slice/app.service/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/user.slice/app.service/worker/cpu.max", "40000 10000\n");
  EXPECT_EQ(cpu_quota(root_), 2.0);
  write("sys/fs/cgroup/user.slice/app.service/worker/cpu.max", "5000 10000\n");
  EXPECT_EQ(cpu_quota(root_), 0.5);
}

TEST_F(ControlGroup, Version1) {
  version_1("/docker/abc", "/docker/abc");
  EXPECT_EQ(cpu_quota(root_), std::nullopt);
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(cpu_quota(root_), std::nullopt);
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(cpu_quota(root_), 2.5);
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "3000\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "3500\n");
  EXPECT_EQ(memory_left(root_), 0U);
}

TEST_F(ControlGroup, PathsOfTheHostLeadToWhatIsMounted) {
  for (const char* group : {"/docker/elsewhere", "/../../system.slice"}) {
    version_2(group, "/docker/abc");
    write("sys/fs/cgroup/cpu.max", "300000 100000\n");
    EXPECT_EQ(cpu_quota(root_), 3.0) << group;
  }
  version_2("/docker/abc/inner", "/docker/abc");
  write("sys/fs/cgroup/inner/cpu.max", "100000 100000\n");
  EXPECT_EQ(cpu_quota(root_), 1.0);
}

TEST_F(ControlGroup, NonsenseIsNoLimit) {
  version_2("/a");
  for (const char* text : {"", "abc", "0 100000", "100000", "100000 0", "-5 100000", "1e400 1"}) {
    write("sys/fs/cgroup/a/cpu.max", text);
    EXPECT_EQ(cpu_quota(root_), std::nullopt) << text;
  }
  write("proc/self/mountinfo", "30 21 - cgroup2\nnonsense\n");
  EXPECT_EQ(cpu_quota(root_), std::nullopt);
}

TEST(UsableCpus, AQuotaIsRoundedUp) {
  EXPECT_EQ(within_quota(8, std::nullopt), 8);
  EXPECT_EQ(within_quota(0, std::nullopt), 1);
  EXPECT_EQ(within_quota(8, 0.01), 1);
  EXPECT_EQ(within_quota(8, 2.0), 2);
  EXPECT_EQ(within_quota(8, 2.5), 3);
  EXPECT_EQ(within_quota(2, 2.5), 2);
  EXPECT_EQ(within_quota(8, 1e300), 8);
}

}  // namespace
}  // namespace sdx
