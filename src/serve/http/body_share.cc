#include "serve/http/body_share.h"

namespace sdx::serve {

bool BodyShare::grow(std::uint64_t bytes) {
  const std::uint64_t before = bytes_;
  if (bytes <= before) return true;
  const std::uint64_t more = bytes - before;
  if (more > most_) return false;
  if (all_->fetch_add(more) > most_ - more) {
    *all_ -= more;
    return false;
  }
  bytes_ += more;  // release() may have come in between
  return true;
}

}  // namespace sdx::serve
