#include "base/system/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/system/file.h"
#include "base/system/fork.h"

namespace sdx {
namespace {

// All that arrives until the child ends, which is ended if that takes too long.
void read_all(int from, pid_t child, std::chrono::seconds most, ChildEnd& to) {
  const auto end = std::chrono::steady_clock::now() + most;
  std::vector<char> piece(std::size_t{1} << 18);
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    pollfd waiting{from, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, INT_MAX)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      to.too_long = true;
      ::kill(child, SIGKILL);
      return;
    }
    const ssize_t got = ::read(from, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    to.said.append(piece.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

ChildEnd run_in_child(const std::function<void(const std::function<bool(std::string_view)>& say)>& work,
                      std::chrono::seconds most) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail(ErrorCode::runtime_failure, "cannot make a pipe: {}", std::strerror(errno));
  const pid_t child = fork_worker();
  if (child == 0) {
    ::close(ends[0]);
    try {
      work([to = ends[1]](std::string_view text) { return write_all(to, text.data(), text.size()); });
    } catch (...) {  // nobody above may act as if it were the parent
      ::_exit(1);
    }
    ::_exit(0);
  }
  const int forked = errno;
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    fail(ErrorCode::runtime_failure, "cannot start a process: {}", std::strerror(forked));
  }
  ChildEnd end;
  read_all(ends[0], child, most, end);
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) {
    end.signal = WTERMSIG(status);
    end.signal_name = ::strsignal(end.signal);
  }
  return end;
}

}  // namespace sdx
