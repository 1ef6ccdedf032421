#include "vision/page/store.h"

#include "base/error.h"

namespace sdx::faces::page {

void PictureStore::add(std::shared_ptr<Picture> picture) {
  const std::size_t size = picture->opened.memory;
  if (size > most_bytes_) {
    fail(ErrorCode::out_of_memory, "the picture takes {} bytes in memory; the page holds at most {}", size, most_bytes_);
  }
  const std::lock_guard lock(mutex_);
  while (bytes_ + size > most_bytes_) drop(std::prev(pictures_.end()));
  pictures_.push_front(std::move(picture));
  by_id_[pictures_.front()->id] = pictures_.begin();
  bytes_ += size;
}

std::shared_ptr<Picture> PictureStore::find(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto at = by_id_.find(id);
  if (at == by_id_.end()) return nullptr;
  pictures_.splice(pictures_.begin(), pictures_, at->second);
  return *at->second;
}

bool PictureStore::remove(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto at = by_id_.find(id);
  if (at == by_id_.end()) return false;
  drop(at->second);
  return true;
}

void PictureStore::drop(List::iterator which) {
  bytes_ -= (*which)->opened.memory;
  by_id_.erase((*which)->id);
  pictures_.erase(which);
}

}  // namespace sdx::faces::page
