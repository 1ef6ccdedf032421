// Waiting for numbers.

#include <chrono>
#include <future>
#include <thread>

#include "handle.h"
#include "let_go.h"

namespace sdx::python::arrays {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// Handing work to another thread takes some 50 us, so only those do it that will not notice: whose last wait was longer than
// this.
constexpr auto kLong = 20ms;
constexpr auto kBetweenSignals = 50ms;

// Another thread computes, while this one looks for signals. Ctrl-C ends the wait; the numbers are computed all the same.
void wait_for_signals(std::span<const mx::array> values) {
  auto done = std::make_shared<std::promise<void>>();
  std::future<void> waiting = done->get_future();
  std::thread([done, arrays = std::vector<mx::array>(values.begin(), values.end())]() mutable {
    try {
      mx::eval(arrays);
      arrays.clear();  // before a waiting thread continues, which may count references
      done->set_value();
    } catch (...) {
      arrays.clear();
      done->set_exception(std::current_exception());
    }
  }).detach();
  while (unlocked([&] { return waiting.wait_for(kBetweenSignals); }) != std::future_status::ready) check(PyErr_CheckSignals());
  waiting.get();
}

}  // namespace

void evaluate(std::span<const mx::array> values) {
  release_left();
  static thread_local bool slow = false;  // the last one here: other threads compute other things
  const auto start = Clock::now();
  if (slow) {
    wait_for_signals(values);
  } else {
    unlocked([&] { mx::eval(values); });
  }
  slow = Clock::now() - start > kLong;
  release_left();  // values that only this evaluation needed
}

}  // namespace sdx::python::arrays
