// Calls the C interface of ONNX Runtime that we answer, at random (world.h). Whatever comes back is fine but a crash, a hang, a
// status without words, and an object that is made by a call that fails. With sanitizers it finds what it is for.
//
//   fuzz_dropin [--first N] [--count N] [--calls N] [--show]
//
// Each number gives the same calls on every machine. --show names them on stderr.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "dropin/status.h"
#include "dropin/table.h"
#include "fuzz/dropin/world.h"

extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1:max_allocation_size_mb=2048:detect_stack_use_after_return=0:exitcode=99";
}
extern "C" const char* __ubsan_default_options() { return "print_stacktrace=1:halt_on_error=1"; }

namespace sdx::fuzz {

void World::say(Slot slot) {
  ++calls;
  if (show_) std::fprintf(stderr, "%s\n", kSlots[static_cast<unsigned>(slot)].name);
}

void World::broken(Slot slot, const char* what) const {
  std::fprintf(stderr, "%s %s\n", kSlots[static_cast<unsigned>(slot)].name, what);
  std::abort();
}

bool World::succeeded(Slot slot, OrtStatus* status) {
  if (status == nullptr) return true;
  ++failures;
  const Caller c(api);
  const auto code = c.call<OrtErrorCode>(Slot::GetErrorCode, const_cast<const OrtStatus*>(status));
  const char* const message = c.call<const char*>(Slot::GetErrorMessage, const_cast<const OrtStatus*>(status));
  if (code <= ORT_OK || code > ORT_DEVICE_RESET) broken(slot, "gives a status without a code");
  if (message == nullptr || *message == '\0') broken(slot, "gives a status without a message");
  c.call<void>(Slot::ReleaseStatus, status);
  return false;
}

const char* World::text() {
  static constexpr const char* kTexts[] = {"x",
                                           "y",
                                           "z",
                                           "s",
                                           "",
                                           "no such name",
                                           "n",
                                           "batch",
                                           "Cpu",
                                           "Cuda",
                                           "CPUExecutionProvider",
                                           "session.load_model_format",
                                           "ORT",
                                           "1",
                                           "0",
                                           "-1",
                                           "session.intra_op.allow_spinning",
                                           "99999999999999999999",
                                           "arena_extend_strategy",
                                           "key",
                                           "\xff\xfe",
                                           "%s%n"};
  return random.chance(3) ? nullptr : kTexts[random.below(std::size(kTexts))];
}

std::vector<std::int64_t> World::extents() {
  static constexpr std::int64_t kExtents[] = {0, 1, 2, 3, 2, 3, 2, 64, -1, -7, std::int64_t{1} << 44, INT64_MAX, INT64_MIN};
  std::vector<std::int64_t> out(random.below(5));
  const std::size_t kinds = random.chance(70) ? 8 : std::size(kExtents);
  for (std::int64_t& extent : out) extent = kExtents[random.below(kinds)];
  return out;
}

ElementType World::element() {
  static constexpr int kTypes[] = {1, 1, 1, 7, 7, 8, 9, 10, 11, 2, 6, 16, 17, 21, 22, 0, 27, -1, 1000};
  return static_cast<ElementType>(kTypes[random.below(std::size(kTypes))]);
}

char* World::memory(std::size_t bytes) {
  kept_.emplace_back(std::max<std::size_t>(bytes, 1));
  return kept_.back().data();
}

void World::free(void* memory) {
  if (memory != nullptr) call(Slot::AllocatorFree, default_allocator(), memory);
}

World::~World() {
  release_all(bindings);
  release_all(sessions);
  release_all(options);
  release_all(run_options);
  release_all(values);
  release_all(types);
  release_all(shapes);
  release_all(allocators);
  release_all(memories);
  release_all(pairs);
  release_all(metadata);
  release_all(threads);
  release_all(attributes);
  release_all(containers);
  release_all(adapters);
  release_all(domains);
  release_all(envs);
}

namespace {

volatile std::uint64_t g_number = 0;

// The number of what crashes, for the next run with --show.
void on_crash(int signal) {
  char text[64] = "fuzz_dropin: at --first ";
  char* at = text + std::strlen(text);
  char digits[20];
  int count = 0;
  for (std::uint64_t n = g_number; n > 0 || count == 0; n /= 10) digits[count++] = static_cast<char>('0' + n % 10);
  while (count > 0) *at++ = digits[--count];
  *at++ = '\n';
  static_cast<void>(!::write(2, text, static_cast<std::size_t>(at - text)));
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

struct Totals {
  std::uint64_t calls = 0, failures = 0;
};

void one(std::uint64_t number, int calls, bool show, Totals& totals) {
  World world(number, show);
  // A program may ask for any version; what is none gets NULL.
  const auto version =
      static_cast<std::uint32_t>(world.random.chance(90) ? world.random.between(1, kNewestApi) : world.random.below(1000));
  world.api = api_base()->GetApi(version);
  if ((world.api != nullptr) != (version >= 1 && version <= kNewestApi)) std::abort();
  if (world.api == nullptr) return;
  const std::vector<Action>* const themes[] = {&kValueActions, &kSessionActions, &kInfoActions};
  while (world.calls < static_cast<std::uint64_t>(calls)) {
    world.random.pick (*themes[world.random.below(std::size(themes))])(world);
  }
  totals.calls += world.calls;
  totals.failures += world.failures;
}

}  // namespace
}  // namespace sdx::fuzz

int main(int argc, char** argv) {
  std::uint64_t first = 1, count = 300;
  int calls = 300;
  bool show = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--show") {
      show = true;
    } else if (i + 1 < argc && word == "--first") {
      first = std::strtoull(argv[++i], nullptr, 10);
    } else if (i + 1 < argc && word == "--count") {
      count = std::strtoull(argv[++i], nullptr, 10);
    } else if (i + 1 < argc && word == "--calls") {
      calls = std::atoi(argv[++i]);
    } else {
      std::fprintf(stderr, "usage: fuzz_dropin [--first N] [--count N] [--calls N] [--show]\n");
      return 2;
    }
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) ::signal(signal, sdx::fuzz::on_crash);
  sdx::fuzz::Totals totals;
  for (std::uint64_t n = first; n < first + count; ++n) {
    sdx::fuzz::g_number = n;
    sdx::fuzz::one(n, calls, show, totals);
  }
  std::printf("%llu sequences, %llu calls, %llu of them refused\n", static_cast<unsigned long long>(count),
              static_cast<unsigned long long>(totals.calls), static_cast<unsigned long long>(totals.failures));
}
