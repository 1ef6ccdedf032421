#include "base/system/files/folder_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace sdx {

struct FolderWatch::State {
  int fd = -1;
};

FolderWatch::FolderWatch() : state_(std::make_unique<State>()) {
  state_->fd = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (state_->fd < 0) fail(ErrorCode::io, "cannot watch folders: {}", std::strerror(errno));
}

FolderWatch::~FolderWatch() { ::close(state_->fd); }

int FolderWatch::add(const std::filesystem::path& folder) {
  return ::inotify_add_watch(state_->fd, folder.c_str(), IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_ONLYDIR);
}

std::vector<FolderEvent> FolderWatch::wait(int ms) {
  std::vector<FolderEvent> events;
  pollfd ready{state_->fd, POLLIN, 0};
  if (::poll(&ready, 1, ms) <= 0) return events;
  alignas(inotify_event) std::array<char, 16384> buffer{};
  const ssize_t n = ::read(state_->fd, buffer.data(), buffer.size());
  for (ssize_t at = 0; at < n;) {
    const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
    at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    if ((event->mask & IN_Q_OVERFLOW) != 0) {
      events.push_back({-1, FolderEvent::What::lost, {}});
    } else if ((event->mask & IN_IGNORED) != 0) {
      events.push_back({event->wd, FolderEvent::What::gone, {}});
    } else if (event->len > 0 && (event->mask & IN_ISDIR) != 0) {
      events.push_back({event->wd, FolderEvent::What::folder_made, event->name});
    } else if (event->len > 0 && (event->mask & (IN_CLOSE_WRITE | IN_MOVED_TO)) != 0) {
      events.push_back({event->wd, FolderEvent::What::written, event->name});
    }
  }
  return events;
}

// While another process has it open for writing, the kernel grants no lease for reading (fcntl(2)).
bool is_being_written(const std::filesystem::path& file) noexcept {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  // Whoever opens the file during the lease makes this signal, which is ignored; SIGIO would end the process.
  ::fcntl(fd, F_SETSIG, SIGURG);
  const bool leased = ::fcntl(fd, F_SETLEASE, F_RDLCK) == 0;
  const bool open_elsewhere = !leased && errno == EAGAIN;
  if (leased) ::fcntl(fd, F_SETLEASE, F_UNLCK);
  ::close(fd);
  return open_elsewhere;
}

}  // namespace sdx
