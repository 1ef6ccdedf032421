#pragma once
// A process forked from this one that answers questions, so that what crashes in it crashes nothing else.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/tools_api.h"

namespace sdx {

// One end of a two-way channel between two processes. One thread at a time.
class SDX_TOOLS_API Channel {
 public:
  explicit Channel(int descriptor) noexcept : fd_(descriptor) {}
  // All of it, or false: the other process is gone.
  bool write(const void* data, std::size_t bytes) const noexcept;
  bool read(void* to, std::size_t bytes) const noexcept;

 private:
  int fd_;
};

class SDX_TOOLS_API Worker {
 public:
  // Calls work(channel) in the new process, which then ends. Only where can_fork(). Throws Error(io) where no process can be
  // started.
  explicit Worker(const std::function<void(Channel)>& work);
  // Closes the channel, which the worker is to take as its end, and ends it if it is still there a second later.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  Channel channel() const noexcept { return Channel(fd_); }
  // Waits for its end: "ended by signal 9 (Killed); perhaps the machine ran out of memory", "ended with exit code 1", "is gone".
  std::string ended();

 private:
  int fd_ = -1;
  std::int64_t id_ = -1;
};

}  // namespace sdx
