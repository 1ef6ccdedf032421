#include "base/system/fork.h"

#include <dirent.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

namespace sdx {

bool can_fork() {
  DIR* tasks = ::opendir("/proc/self/task");
  if (tasks == nullptr) return false;
  int count = 0;
  while (const dirent* entry = ::readdir(tasks)) count += entry->d_name[0] != '.' ? 1 : 0;
  ::closedir(tasks);
  return count == 1;
}

pid_t fork_worker() {
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it died before the line above
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  return 0;
}

}  // namespace sdx
