#include "base/system/processes/worker.h"

#include "base/error.h"

namespace sdx {

// Windows makes processes from programs alone, so nothing calls these.
bool Channel::write(const void*, std::size_t) const noexcept { return false; }
bool Channel::read(void*, std::size_t) const noexcept { return false; }
Worker::Worker(const std::function<void(Channel)>&) { fail(ErrorCode::io, "this system cannot fork"); }
Worker::~Worker() = default;
std::string Worker::ended() { return "is gone"; }

}  // namespace sdx
