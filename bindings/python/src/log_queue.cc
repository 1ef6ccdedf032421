#include "log_queue.h"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/system/printable.h"
#include "entry.h"

namespace sdx::python {
namespace {

struct Message {
  log::Level level;
  std::string text;
};

void print(log::Level level, std::string_view text) {
  constexpr const char* kNames[] = {"debug", "info", "warning", "error", "off"};
  const std::string line = fmt::format("sdx: {}: {}\n", kNames[static_cast<int>(level)], printable(text));
  std::fwrite(line.data(), 1, line.size(), stderr);
}

class Queue {
 public:
  void switch_on() {
    const std::lock_guard lock(mutex_);
    on_ = true;
    process_ = ::getpid();
  }
  void switch_off() {
    {
      const std::lock_guard lock(mutex_);
      on_ = false;
    }
    changed_.notify_all();
  }
  void add(log::Level level, std::string_view text) {
    if (::getpid() != process_) return print(level, text);  // a fork, without the thread that takes messages
    {
      const std::lock_guard lock(mutex_);
      if (!on_ || taker_ == std::this_thread::get_id() || messages_.size() >= kMost) return print(level, text);
      messages_.push_back({level, std::string(text)});
    }
    changed_.notify_one();
  }
  std::optional<Message> take() {
    std::unique_lock lock(mutex_);
    taker_ = std::this_thread::get_id();
    changed_.wait(lock, [&] { return !messages_.empty() || !on_; });
    if (messages_.empty()) return std::nullopt;
    Message first = std::move(messages_.front());
    messages_.pop_front();
    return first;
  }

 private:
  static constexpr std::size_t kMost = 10'000;  // for a function that does not keep up
  std::mutex mutex_;
  std::condition_variable changed_;
  bool on_ = false;
  std::atomic<pid_t> process_{0};
  std::thread::id taker_;
  std::deque<Message> messages_;
};

Queue& queue() {
  static Queue* const one = new Queue;  // never destroyed: a thread may wait for it when the process ends
  return *one;
}

}  // namespace

Object queue_log(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const bool on = to_truth(argument(arguments, 0));
  unlocked([&] {  // a thread that is writing may hold the log
    if (on) {
      queue().switch_on();
      log::set_sink([](log::Level level, std::string_view text) { queue().add(level, text); });
    } else {
      log::set_sink(nullptr);
      queue().switch_off();
    }
  });
  return Object::none();
}

Object take_log(PyObject*, PyObject*) {
  const std::optional<Message> message = unlocked([] { return queue().take(); });
  if (!message) return Object::none();
  return tuple(number(static_cast<std::int64_t>(message->level)), text(message->text));
}

Object call_back(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 3);
  PyObject* const callback = argument(arguments, 0);
  const Object category = text("onnxruntime"), none = text("");
  PyObject* const answer = PyObject_CallFunctionObjArgs(callback, argument(arguments, 1), category.get(), none.get(), none.get(),
                                                        argument(arguments, 2), nullptr);
  const bool called = answer != nullptr;
  if (!called) PyErr_WriteUnraisable(callback);
  Py_XDECREF(answer);
  return truth(called);
}

}  // namespace sdx::python
