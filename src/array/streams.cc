#include "array/streams.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>

#include "array/backend.h"
#include "array/node.h"
#include "base/error.h"
#include "base/thread_pool.h"

namespace sdx::array {
namespace {

struct Queue {
  Device device;
  std::deque<std::function<void()>> work;  // the first is under way where `busy`; it stays until it is done
  bool started = false, busy = false;
  std::uint64_t put = 0, done = 0;  // since the start
};

struct Registry {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Queue> queues{1};  // by number of the stream; 0 is the CPU's default. Never shrinks
  bool stopping = false;
};

// Never destroyed: threads use it while the process ends.
Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

// Streams are waited for, as far as one piece of work goes, before what they use is destroyed.
void stop_at_exit() {
  Registry& r = registry();
  std::unique_lock lock(r.mutex);
  r.stopping = true;
  r.changed.notify_all();
  r.changed.wait_for(lock, std::chrono::seconds(30),
                     [&] { return std::none_of(r.queues.begin(), r.queues.end(), [](const Queue& q) { return q.busy; }); });
}

void work_for(Queue& q) {
  Registry& r = registry();
  std::unique_lock lock(r.mutex);
  for (;;) {
    r.changed.wait(lock, [&] { return r.stopping || !q.work.empty(); });
    if (r.stopping) return;
    q.busy = true;
    const std::function<void()>& next = q.work.front();
    lock.unlock();
    next();
    lock.lock();
    q.busy = false;
    // What it held goes without the lock: memory of a caller's may be given back by locks of his own.
    std::function<void()> done = std::move(q.work.front());
    q.work.pop_front();
    ++q.done;
    r.changed.notify_all();
    lock.unlock();
    done = nullptr;
    lock.lock();
  }
}

// Under the lock.
void start(Queue& q) {
  static const bool at_exit = [] {
    ThreadPool::shared();  // made before, so that it ends after
    return std::atexit(stop_at_exit) == 0;
  }();
  (void)at_exit;
  try {
    std::thread([&q] { work_for(q); }).detach();
  } catch (const std::system_error& e) {
    fail(ErrorCode::runtime_failure, "cannot start a thread for a stream of arrays: {}", e.what());
  }
  q.started = true;
}

Queue& queue_of(const Stream& stream) {
  Registry& r = registry();
  const auto number = static_cast<std::size_t>(stream.index);
  if (stream.index < 0 || number >= r.queues.size()) {
    fail(ErrorCode::invalid_argument, "there is no stream {}; new_stream() makes them", stream.index);
  }
  return r.queues[number];
}

void check(const Device& device) {
  if (device.type == Device::Type::gpu && !detail::backend_has_gpu()) {
    fail(ErrorCode::invalid_argument, "the backend {} has no gpu; set_backend() or SDX_BACKEND chooses another", get_backend());
  }
}

// The thread's own, set by set_default_device() and set_default_stream(): operations without a stream of their own use these.
// Nothing: the backend's own.
thread_local std::optional<Device> chosen_device;
// By type of the device; the index -1: none chosen.
thread_local Stream chosen_stream[2] = {{0, {}}, {-1, {Device::Type::gpu, 0}}};

}  // namespace

Device default_device() {
  if (!chosen_device) chosen_device = Device{detail::backend_has_gpu() ? Device::Type::gpu : Device::Type::cpu, 0};
  return *chosen_device;
}

void set_default_device(Device device) {
  check(device);
  chosen_device = device;
}

Stream default_stream(Device device) {
  check(device);
  Stream& chosen = chosen_stream[static_cast<std::size_t>(device.type)];
  if (chosen.index < 0) {
    // One for the process.
    static const Stream gpu = new_stream({Device::Type::gpu, 0});
    chosen = gpu;
  }
  return chosen;
}

void set_default_stream(Stream stream) {
  {
    const std::lock_guard lock(registry().mutex);
    queue_of(stream);
  }
  check(stream.device);
  chosen_stream[static_cast<std::size_t>(stream.device.type)] = stream;
}

Stream new_stream(Device device) {
  check(device);
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  r.queues.emplace_back().device = device;
  return {static_cast<int>(r.queues.size() - 1), device};
}

void synchronize() { synchronize(default_stream(default_device())); }
void synchronize(Stream stream) { detail::wait_for(stream); }

namespace detail {

Stream to_stream(const StreamOrDevice& stream) {
  if (const auto* s = std::get_if<Stream>(&stream)) return *s;
  if (const auto* d = std::get_if<Device>(&stream)) return default_stream(*d);
  const Device device = default_device();
  const Stream& chosen = chosen_stream[static_cast<std::size_t>(device.type)];
  return chosen.index >= 0 ? chosen : default_stream(device);
}

void put(const Stream& stream, std::function<void()> work) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  Queue& q = queue_of(stream);
  if (r.stopping) fail(ErrorCode::runtime_failure, "streams of arrays no longer compute: the process is ending");
  if (!q.started) start(q);  // may fail: then nothing is queued
  q.work.push_back(std::move(work));
  ++q.put;
  r.changed.notify_all();
}

bool is_idle(const Stream& stream) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  return queue_of(stream).work.empty();
}

void wait_for(const Stream& stream) {
  Registry& r = registry();
  std::unique_lock lock(r.mutex);
  Queue& q = queue_of(stream);
  const std::uint64_t last = q.put;  // what others put there meanwhile is not waited for
  r.changed.wait(lock, [&] { return r.stopping || q.done >= last; });
}

void restart_streams() {
  Registry& r = registry();
  new (&r.changed) std::condition_variable;  // whoever waited on it is in the parent
  for (Queue& q : r.queues) {
    q.started = q.busy = false;
    try {
      if (!q.work.empty()) start(q);
    } catch (const Error&) {
      // fork() must return; the next work that is put there tries again.
    }
  }
}

void lock_streams() { registry().mutex.lock(); }
void unlock_streams() { registry().mutex.unlock(); }

}  // namespace detail
}  // namespace sdx::array
