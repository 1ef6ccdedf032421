#pragma once
// Streams: which there are, which is the default, and the threads that work for them.

#include <functional>

#include <sdx/array/array.hpp>

namespace sdx::array::detail {

// Puts work into the stream's queue; its thread starts with the first. `work` must not throw. Order is kept within a stream.
void put(const Stream& stream, std::function<void()> work);
// Whether nothing is in the queue or under way: then the caller may work itself.
bool is_idle(const Stream& stream);
// Waits until all that was put into the queue before is done.
void wait_for(const Stream& stream);

// After fork(), in the child: threads are gone; work that is still queued gets new ones.
void restart_streams();
// Around fork().
void lock_streams();
void unlock_streams();

}  // namespace sdx::array::detail
