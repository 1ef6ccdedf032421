// What a portable build replaces (docs/design/portable.md), in a program that tests/wheel/portable.py runs on old systems and new
// ones: its start, waiting until a time, files, and exceptions that come from libsdx.so. Prints the first thing that is wrong;
// exit code 1.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <random>
#include <sdx/sdx.hpp>
#include <shared_mutex>
#include <string>
#include <thread>

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

int constructed = 0;
struct Counted {
  Counted() { ++constructed; }
} counted;
struct Farewell {
  ~Farewell() { std::puts("farewell"); }
} farewell;

void check(bool right, const char* what) {
  if (right) return;
  std::printf("wrong: %s\n", what);
  std::fflush(stdout);
  std::_Exit(1);
}

// A variable of the C library that has two names, of which the program has a copy.
void check_environment() { check(environ != nullptr && *environ != nullptr, "environ is empty"); }

void check_exceptions() {
  try {
    sdx::Session::open("no/such/model.onnx");
    check(false, "a model that is not there is opened");
  } catch (const sdx::Error& error) {
    check(error.code() == sdx::ErrorCode::io, "the code of an error from libsdx.so");
    check(std::string(error.what()).find("model.onnx") != std::string::npos, "the text of an error from libsdx.so");
  }
  try {
    static_cast<void>(std::filesystem::file_size("no/such/file"));
    check(false, "the size of a file that is not there");
  } catch (const std::filesystem::filesystem_error& error) {
    check(error.code() == std::errc::no_such_file_or_directory, "the category of a system's error");
  }
  std::exception_ptr kept;
  std::thread([&kept] {
    try {
      sdx::Session::open("no/such/model.onnx");
    } catch (...) {
      kept = std::current_exception();
    }
  }).join();
  try {
    std::rethrow_exception(kept);
  } catch (const std::exception& error) {
    check(dynamic_cast<const sdx::Error*>(&error) != nullptr, "an error that another thread has thrown");
  }
}

// Longer than a second, which liblater.a waits at once on old systems.
template <class Wait>
void check_wait(Wait wait, std::chrono::milliseconds least, const char* what) {
  const Clock::time_point start = Clock::now();
  check(!wait(), what);
  check(Clock::now() - start >= least, what);
}

void check_waiting() {
  std::mutex mutex;
  std::condition_variable condition;
  check_wait(
      [&] {
        std::unique_lock lock(mutex);
        return condition.wait_for(lock, 1200ms, [] { return false; });
      },
      1200ms, "waiting for a condition");
  bool said = false;
  std::thread other([&] {
    const std::lock_guard lock(mutex);
    said = true;
    condition.notify_all();
  });
  {
    std::unique_lock lock(mutex);
    check(condition.wait_for(lock, 60s, [&said] { return said; }), "a condition that comes true");
  }
  other.join();
  std::timed_mutex timed;
  std::shared_timed_mutex shared;
  timed.lock();
  shared.lock();
  std::thread([&] {
    check_wait([&] { return timed.try_lock_for(1100ms); }, 1100ms, "waiting for a mutex");
    check_wait([&] { return shared.try_lock_for(1100ms); }, 1100ms, "waiting to write");
    check_wait([&] { return shared.try_lock_shared_for(1100ms); }, 1100ms, "waiting to read");
    check_wait([&] { return shared.try_lock_shared_until(Clock::now() - 1ms); }, 0ms, "a time that is over");
  }).join();
  timed.unlock();
  check(timed.try_lock_for(1h), "a free mutex");
}

void check_files(const char* program) {
  struct stat followed {
  }, link{}, open{};
  std::FILE* const file = std::fopen(program, "rb");
  check(file != nullptr && ::fstat(::fileno(file), &open) == 0 && ::stat(program, &followed) == 0, "a file's properties");
  check(open.st_ino == followed.st_ino && S_ISREG(followed.st_mode) && followed.st_size > 0, "a file's properties");
  check(::lstat("/proc/self/exe", &link) == 0 && S_ISLNK(link.st_mode), "a link's properties");
  check(std::filesystem::file_size(program) == static_cast<std::uintmax_t>(followed.st_size), "a file's size");
  std::fclose(file);
}

}  // namespace

int main(int, char** arguments) {
  check(constructed == 1, "constructors run once");
  check_files(arguments[0]);
  check_environment();
  check_exceptions();
  check_waiting();
  std::random_device random;
  check(random() != random() || random() != random(), "random numbers");
  std::puts("right");
}
