#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <unordered_map>

#include "base/error.h"
#include "base/system/file.h"
#include "base/system/files/folder_watch.h"
#include "base/system/interrupt.h"
#include "vision/batch/input/feed.h"
#include "vision/batch/output/journal.h"

namespace sdx::vision::batch {
namespace {

namespace fs = std::filesystem;

// Whether another process is about to fill the file. Where the system cannot say who writes to it, emptiness is the only sign.
bool is_unfinished(const fs::path& file) {
  const auto facts = file_facts(file);
  return facts && (facts->stamp.bytes == 0 || is_being_written(file));
}

}  // namespace

class Watch {
 public:
  Watch(const std::vector<fs::path>& folders, const std::vector<fs::path>& outputs) : roots_(folders) {
    std::transform(outputs.begin(), outputs.end(), std::back_inserter(outputs_), real_folder);
    for (const fs::path& root : roots_) add(root, root, false);
  }

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
    const int id = system_.add(folder);
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
    for (const FolderEvent& event : system_.wait(Interrupt::kLookMs)) {
      if (event.what == FolderEvent::What::lost) {
        for (const fs::path& root : roots_) add(root, root, true);  // whatever was missed is in the folders
        continue;
      }
      const auto found = folders_.find(event.folder);
      if (found == folders_.end() || text_of(event.name).starts_with('.')) continue;
      if (event.what == FolderEvent::What::gone) {
        folders_.erase(found);
        continue;
      }
      const Folder folder = found->second;  // which add() may move
      const fs::path path = folder.path / event.name;
      if (event.what == FolderEvent::What::written) {
        take(folder.root, path);
      } else if (!is_one_of(outputs_, path)) {
        add(folder.root, path, true);
      }
    }
  }

  Feed first_;
  std::vector<fs::path> roots_, outputs_;
  FolderWatch system_;
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
