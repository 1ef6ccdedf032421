"""stubs.py PROJECT C_COMPILER CXX_COMPILER: links a small library and program for glibc 2.28 (cmake/portable) and runs them; check.py must accept
them, and refuse what is linked without stubs. Exit code 77: skipped, with the reason."""

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

LIBRARY = """
#include <charconv>
#include <filesystem>
#include <stdexcept>
__attribute__((visibility("default"))) double parse(const char* begin, const char* end) {
  double value = 0;
  if (std::from_chars(begin, end, value).ec != std::errc{}) throw std::invalid_argument("no number");
  return value;
}
__attribute__((visibility("default"))) void list(const char* folder) {
  for (const auto& each : std::filesystem::directory_iterator(folder)) static_cast<void>(each);
}
"""
PROGRAM = """
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
double parse(const char* begin, const char* end);
void list(const char* folder);
#ifdef AS_BEFORE_2_30  // where the system has no functions that wait for a time of another clock
extern "C" void* dlsym(void*, const char*) { return nullptr; }
#endif
int constructed = 0;
struct Counted {
  Counted() { ++constructed; }
  ~Counted() { std::puts("destroyed"); }
} counted;
int main(int argc, char** arguments) {
  const std::string number = argc > 5 ? arguments[1] : "1.5", word = "word";
  std::printf("%d constructor, %g\\n", constructed, std::pow(2, parse(number.data(), number.data() + number.size())));
  try {
    parse(word.data(), word.data() + word.size());
  } catch (const std::invalid_argument& error) {
    std::puts(error.what());
  }
  try {
    list("/no/such/folder");
  } catch (const std::filesystem::filesystem_error& error) {
    std::puts(error.code() == std::errc::no_such_file_or_directory ? "no folder" : "another category");
  }
  using namespace std::chrono_literals;
  const auto start = std::chrono::steady_clock::now();
  std::timed_mutex timed;
  std::shared_timed_mutex shared;
  timed.lock();
  shared.lock();
  std::thread([&] {  // the first time is longer than what is waited at once
    std::puts(timed.try_lock_for(1100ms) || shared.try_lock_for(20ms) || shared.try_lock_shared_for(20ms) ? "locked" : "waited");
  }).join();
  timed.unlock();
  std::puts(timed.try_lock_for(1h) ? "locked" : "waited");
  std::mutex mutex;
  std::condition_variable condition;
  std::unique_lock lock(mutex);
  std::puts(condition.wait_for(lock, 1100ms, [] { return false; }) ? "true" : "false");
  std::puts(std::chrono::steady_clock::now() - start >= 2240ms ? "long enough" : "too short");
  std::random_device random;
  std::puts(random() != random() || random() != random() ? "random" : "not random");
  std::printf("%d\\n", static_cast<int>(std::filesystem::file_size(arguments[0]) > 1000));
}
"""
EXPECTED = "1 constructor, 2.82843\nno number\nno folder\nwaited\nlocked\nfalse\nlong enough\nrandom\n1\ndestroyed\n"


def run(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True)


def build(compiler, folder, *flags):
    folder.mkdir()
    flags = ["-Wl,-z,defs", "-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", *flags]
    (folder / "library.cc").write_text(LIBRARY)
    (folder / "program.cc").write_text(PROGRAM)
    for command in ((*flags, "-shared", "-o", folder / "libsdx_parse.so", folder / "library.cc"),
                    (*flags, "-o", folder / "program", folder / "program.cc", f"-L{folder}", "-lsdx_parse", "-Wl,-rpath,$ORIGIN", "-pthread")):
        done = run(compiler, *command)
        if done.returncode != 0:
            sys.exit(f"{compiler} failed\n{done.stderr}")
    return run(folder / "program").stdout


def main():
    portable, c_compiler, compiler = Path(sys.argv[1]) / "cmake" / "portable", sys.argv[2], sys.argv[3]
    with scratch() as work:
        made = run(sys.executable, "-B", portable / "stubs.py", "2.28", work / "stubs", c_compiler)
        if made.returncode != 0:
            if "2.34" in made.stderr:
                print(made.stderr)
                sys.exit(77)
            sys.exit(made.stderr)
        printed = build(compiler, work / "new")
        if printed != EXPECTED:
            sys.exit(f"the ordinary program prints\n{printed}")
        for name, *flags in (("old",), ("oldest", "-DAS_BEFORE_2_30"), ("static", "-static-libstdc++")):
            printed = build(compiler, work / name, f"@{work / 'stubs' / 'flags'}", *flags)
            # Each static C++ library has error categories of its own: only modules with an interface in C contain one.
            if printed.replace("another category", "no folder" if name == "static" else "") != EXPECTED:
                sys.exit(f"the portable program prints\n{printed}")
        needed = run("readelf", "-d", work / "old" / "libsdx_parse.so").stdout  # has no threads of its own
        if "[libpthread.so.0]" not in needed:
            sys.exit(f"an older libstdc++ would start no threads:\n{needed}")
        refused = run(sys.executable, "-B", portable / "check.py", "2.28", "readelf", work / "new")
        if refused.returncode == 0 or "program: needs GLIBC_2.34: " not in refused.stderr or "GLIBCXX_3.4.29: _ZSt10from_chars" not in refused.stderr:
            sys.exit(f"check.py does not refuse the ordinary program:\n{refused.stdout}{refused.stderr}")
        accepted = run(sys.executable, "-B", portable / "check.py", "2.28", "readelf", work / "old")
        if accepted.returncode != 0:
            sys.exit(f"check.py refuses the portable program:\n{accepted.stderr}")
        print(accepted.stdout.strip())


if __name__ == "__main__":
    main()
