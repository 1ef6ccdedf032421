#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <unordered_map>

#include "base/error.h"
#include "base/system/interrupt.h"
#include "vision/batch/input/feed.h"
#include "vision/batch/output/journal.h"

namespace sdx::vision::batch {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kEvents = IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_ONLYDIR;

// Whether another process is about to fill the file: while it is open for writing, the kernel grants no lease for reading
// (fcntl(2)). On file systems without leases, and for files of other users, emptiness is the only sign.
bool is_unfinished(const fs::path& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  ::fcntl(fd, F_SETSIG,
          SIGURG);  // whoever opens the file during the lease makes this signal, which is ignored; SIGIO would end us
  const bool leased = ::fcntl(fd, F_SETLEASE, F_RDLCK) == 0;
  const bool open_elsewhere = !leased && errno == EAGAIN;
  if (leased) ::fcntl(fd, F_SETLEASE, F_UNLCK);
  struct stat info {};
  const bool empty = ::fstat(fd, &info) == 0 && info.st_size == 0;
  ::close(fd);
  return open_elsewhere || empty;
}

}  // namespace

class Watch {
 public:
  Watch(const std::vector<fs::path>& folders, const std::vector<fs::path>& outputs)
      : roots_(folders), fd_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    if (fd_ < 0) fail(ErrorCode::io, "cannot watch folders: {}", std::strerror(errno));
    std::transform(outputs.begin(), outputs.end(), std::back_inserter(outputs_), real_folder);
    for (const fs::path& root : roots_) add(root, root, false);
  }
  ~Watch() { ::close(fd_); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  void begin(Feed first) { first_ = std::move(first); }

  std::optional<Next> next() {
    if (first_) {
      if (std::optional<Next> n = first_()) {
        // A file that is written to while it waits in the list comes again as an event.
        seen_[n->input.path.string()] = identity_of(n->input.path);
        return n;
      }
      first_ = {};
    }
    while (!Interrupt::requested()) {
      while (!waiting_.empty()) {
        Input input = std::move(waiting_.front());
        waiting_.pop_front();
        const std::optional<Identity> now = identity_of(input.path);
        std::optional<Identity>& before = seen_[input.path.string()];
        if (!now || now == before) continue;  // gone again, or in the list of those that were there
        before = now;
        return Next{std::move(input), std::nullopt};
      }
      wait();
    }
    return std::nullopt;
  }

 private:
  struct Folder {
    fs::path root, path;
  };

  // `fresh`: a folder that has just appeared; its files may have been written before it was watched.
  void add(const fs::path& root, const fs::path& folder, bool fresh) {
    const int id = ::inotify_add_watch(fd_, folder.c_str(), kEvents);
    if (id < 0) {
      if (errno == ENOENT || errno == ENOTDIR) return;  // gone again
      fail(ErrorCode::io, "cannot watch '{}': {}{}", folder.string(), std::strerror(errno),
           errno == ENOSPC ? " (more folders than fs.inotify.max_user_watches allows)" : "");
    }
    folders_[id] = {root, folder};
    std::error_code error;
    std::vector<fs::path> entries;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) entries.push_back(it->path());
    std::sort(entries.begin(), entries.end());
    for (const fs::path& entry : entries) {
      if (entry.filename().string().starts_with('.')) continue;
      if (fs::is_directory(entry, error)) {
        if (!fs::is_symlink(entry, error) && !is_one_of(outputs_, entry)) add(root, entry, fresh);
      } else if (fresh && !is_unfinished(entry)) {  // else an event tells of its end
        take(root, entry);
      }
    }
  }

  void take(const fs::path& root, const fs::path& file) {
    std::error_code ignored;
    if (fs::is_regular_file(file, ignored) && looks_like_picture(file)) waiting_.push_back(input_of(file, root));
  }

  void wait() {
    pollfd ready{fd_, POLLIN, 0};
    if (::poll(&ready, 1, Interrupt::kLookMs) <= 0) return;
    alignas(inotify_event) std::array<char, 16384> buffer{};
    const ssize_t n = ::read(fd_, buffer.data(), buffer.size());
    for (ssize_t at = 0; at < n;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      if ((event->mask & IN_Q_OVERFLOW) != 0) {
        for (const fs::path& root : roots_) add(root, root, true);  // whatever was missed is in the folders
        continue;
      }
      const auto folder = folders_.find(event->wd);
      if (folder == folders_.end()) continue;
      if ((event->mask & IN_IGNORED) != 0) {
        folders_.erase(folder);
        continue;
      }
      if (event->len == 0 || event->name[0] == '.') continue;
      handle(Folder(folder->second), event->mask, event->name);
    }
  }

  void handle(const Folder& folder, std::uint32_t mask, const char* name) {
    const fs::path path = folder.path / name;
    if ((mask & IN_ISDIR) != 0) {
      if (!is_one_of(outputs_, path)) add(folder.root, path, true);
    } else if ((mask & (IN_CLOSE_WRITE | IN_MOVED_TO)) != 0) {
      take(folder.root, path);
    }
  }

  Feed first_;
  std::vector<fs::path> roots_, outputs_;
  int fd_;
  std::unordered_map<int, Folder> folders_;
  std::deque<Input> waiting_;
  std::unordered_map<std::string, std::optional<Identity>> seen_;
};

std::shared_ptr<Watch> watch_folders(const std::vector<fs::path>& folders, const std::vector<fs::path>& outputs) {
  return std::make_shared<Watch>(folders, outputs);
}

Feed watch_feed(std::shared_ptr<Watch> watch, Feed first) {
  watch->begin(std::move(first));
  return [watch = std::move(watch)] { return watch->next(); };
}

}  // namespace sdx::vision::batch
