#pragma once
// Pictures that the page holds: in memory only, and limited in bytes.

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "vision/page/backend.h"

namespace sdx::faces::page {

struct Looked {
  Detection detection;
  std::vector<Quality> quality;  // of each face
};

struct Picture {
  std::string id, name;  // name: as the browser says it; not to be trusted
  Opened opened;
  double decode_ms = 0;

  std::mutex mutex;  // of `looked`
  std::map<Runtime, std::shared_ptr<const Looked>> looked;
};

// Thread-safe. Beyond `most_bytes`, the least recently used pictures are dropped; a picture that is still referenced stays in
// memory until then.
class PictureStore {
 public:
  explicit PictureStore(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  // Throws Error(out_of_memory) for a picture that alone is too large.
  void add(std::shared_ptr<Picture> picture);
  std::shared_ptr<Picture> find(const std::string& id);  // null when there is none
  bool remove(const std::string& id);

 private:
  using List = std::list<std::shared_ptr<Picture>>;
  void drop(List::iterator which);

  const std::size_t most_bytes_;
  std::mutex mutex_;
  List pictures_;  // the latest used first
  std::unordered_map<std::string, List::iterator> by_id_;
  std::size_t bytes_ = 0;
};

}  // namespace sdx::faces::page
