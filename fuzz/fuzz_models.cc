// Opens and runs models that look valid: cases of ONNX's test data, changed node by node (mutate.h). Whatever comes out is fine
// but a crash, a hang, an exception that is no sdx::Error, and an error of the kind `internal`. With sanitizers it finds what it
// is for.
//
//   fuzz_models [--first N] [--count N] [--seconds S] [--timeout S] [--save FOLDER] [--show] [--compare] FOLDER...
//
// --compare: runs every model with passes and without, and reports other shapes, types and values, and runs that only one of them
// refuses. Some of these are no faults: passes drop what nobody reads, also what would fail.
//
// Each number gives the same model on every machine that has the same folders. FOLDER holds cases in ONNX's layout.

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sdx/session.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "conformance/case.h"
#include "conformance/suite.h"
#include "mutate.h"
#include "onnx/writer.h"
#include "session/agreement.h"

// What one model may take; a report ends the process.
extern "C" const char* __asan_default_options() {
  return "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=2048:hard_rss_limit_mb=6144:detect_stack_use_after_"
         "return=0:"
         "exitcode=99";
}
extern "C" const char* __ubsan_default_options() { return "print_stacktrace=1:halt_on_error=1"; }

namespace {

namespace fs = std::filesystem;
using namespace sdx;
using fuzz::Example;

constexpr std::uint64_t kBatch = 200;                    // models for each process
constexpr std::size_t kMemory = std::size_t{256} << 20;  // of tensors
constexpr std::uintmax_t kMostBytes = 64 << 10;          // of an example's file

struct Options {
  std::vector<fs::path> cases;
  std::uint64_t first = 1, count = 1000;
  unsigned seconds = 0, timeout = 30;  // 0: no limit
  fs::path save = "found";
  bool show = false, compare = false;
};

// What a child tells its parent, also when it ends by a signal.
struct Shared {
  std::atomic<std::uint64_t> at, ran, refused, unwritten, complaints;
};

[[noreturn]] void usage() {
  fmt::print(
      stderr,
      "usage: fuzz_models [--first N] [--count N] [--seconds S] [--timeout S] [--save FOLDER] [--show] [--compare] FOLDER...\n");
  std::exit(2);
}

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] { return i + 1 < argc ? argv[++i] : (usage(), nullptr); };
    const auto number = [&] { return std::strtoull(value(), nullptr, 10); };
    if (word == "--first") {
      o.first = number();
    } else if (word == "--count") {
      o.count = number();
    } else if (word == "--seconds") {
      o.seconds = static_cast<unsigned>(number());
    } else if (word == "--timeout") {
      o.timeout = static_cast<unsigned>(number());
    } else if (word == "--save") {
      o.save = value();
    } else if (word == "--release") {
      value();  // as tests/conformance/run_data.py says it
    } else if (word == "--show") {
      o.show = true;
    } else if (word == "--compare") {
      o.compare = true;
    } else if (word.starts_with("--")) {
      usage();
    } else {
      for (const fs::path& path : testing::find_cases(word)) {
        const fs::path file = fs::is_directory(path) ? path / "model.onnx" : path;
        if (fs::exists(file) && fs::file_size(file) <= kMostBytes) o.cases.push_back(path);
      }
    }
  }
  if (o.cases.empty()) usage();
  return o;
}

// The examples as they are asked for.
class Examples {
 public:
  explicit Examples(const std::vector<fs::path>& cases) : cases_(cases) {}

  // Cases that cannot be read give the next one.
  const Example& pick(fuzz::Random& random) {
    for (std::size_t at = random.below(cases_.size());; at = (at + 1) % cases_.size()) {
      auto [it, added] = known_.try_emplace(at);
      if (added) {
        testing::run_case(cases_[at], [&, found = it](const Model& model, std::vector<Value> inputs) -> std::vector<Value> {
          found->second = {model, std::move(inputs)};
          fail(ErrorCode::cancelled, "this is all that is wanted");
        });
      }
      if (!it->second.model.graph.nodes().empty()) return it->second;
    }
  }

 private:
  const std::vector<fs::path>& cases_;
  std::map<std::size_t, Example> known_;
};

struct Attempt {
  std::string bytes, changes;
  NamedValues inputs;
  bool random = false;  // some operator draws numbers
};

bool draws_numbers(const Graph& g) {
  return std::any_of(g.nodes().begin(), g.nodes().end(), [](const Node& n) {
    const bool draws = n.op_type.starts_with("Random") || n.op_type == "Multinomial" || n.op_type == "Bernoulli" ||
                       n.op_type.find("Dropout") != std::string::npos;
    return draws ||
           std::any_of(n.subgraphs.begin(), n.subgraphs.end(), [](const Subgraph& s) { return draws_numbers(*s.graph); });
  });
}

// Empty bytes: a model that the format cannot say.
Attempt make(std::uint64_t number, Examples& examples) {
  fuzz::Random random(number);
  Example e = examples.pick(random);
  fuzz::Mutator mutator(random, [&]() -> const Example& { return examples.pick(random); });
  Attempt a;
  a.changes = mutator.mutate(e, 1 + static_cast<int>(random.below(6)));
  Graph& g = e.model.graph;
  for (std::size_t i = 0; i < e.inputs.size(); ++i) {
    if (!e.inputs[i].empty()) a.inputs.add(g.value(g.inputs().at(i)).name, e.inputs[i]);
  }
  for (ValueId v = 0; v < g.values().size(); ++v) {
    if (!g.value(v).is_input) g.value(v).declared = g.value(v).type = random.chance(70) ? Type{} : g.value(v).type;
  }
  if (random.chance(50)) {
    mutator.lie(e);
    a.changes += ", lies";
    a.inputs = {};
    for (std::size_t i = 0; i < e.inputs.size(); ++i) {
      if (!e.inputs[i].empty()) a.inputs.add(g.value(g.inputs().at(i)).name, e.inputs[i]);
    }
  }
  a.random = draws_numbers(g);
  try {
    a.bytes = write_model(e.model);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) throw;
  }
  return a;
}

void run(std::uint64_t number, const Attempt& a, Shared& shared) {
  SessionOptions options;
  options.optimize = number % 4 != 0;
  options.threads = number % 3 == 0 ? 2 : 1;
  options.memory_limit = kMemory;
  options.providers = {"cpu"};
  options.cache = false;
  RunOptions limits;
  limits.timeout = std::chrono::milliseconds(5000);
  const Session session = Session::from_bytes(std::as_bytes(std::span<const char>(a.bytes.data(), a.bytes.size())), options);
  ++shared.refused;  // until it ran
  session.run(a.inputs, limits);
  session.run(a.inputs, limits);  // from the plan that is there now
  --shared.refused;
  ++shared.ran;
}

// The results, or why there are none.
struct Answer {
  NamedValues values;
  std::string refusal;
};

Answer answer_of(const Attempt& a, bool optimize) {
  SessionOptions options;
  options.optimize = optimize;
  options.threads = 1;
  options.memory_limit = kMemory;
  options.providers = {"cpu"};
  options.cache = false;
  Answer answer;
  try {
    RunOptions limits;
    limits.timeout = std::chrono::milliseconds(5000);
    const Session session = Session::from_bytes(std::as_bytes(std::span<const char>(a.bytes.data(), a.bytes.size())), options);
    answer.values = session.run(a.inputs, limits);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::internal) throw;
    answer.refusal = e.what();
  }
  return answer;
}

// What passes change; empty: nothing.
std::string change_by_passes(const Attempt& a) {
  const Answer plain = answer_of(a, false), fast = answer_of(a, true);
  if (plain.refusal.empty() && !fast.refusal.empty()) return "refused only with passes: " + fast.refusal;
  if (!plain.refusal.empty() && fast.refusal.empty()) return "refused only without passes: " + plain.refusal;
  for (std::size_t i = 0; i < plain.values.size() && i < fast.values.size(); ++i) {
    const std::string difference = session::disagreement(plain.values[i].value, fast.values[i].value, !a.random);
    if (!difference.empty()) return fmt::format("with passes '{}' {}", plain.values[i].name, difference);
  }
  return "";
}

void complain(const Options& o, std::uint64_t number, const Attempt& a, const std::string& what) {
  fs::create_directories(o.save);
  const fs::path file = o.save / fmt::format("{}.onnx", number);
  std::ofstream(file, std::ios::binary).write(a.bytes.data(), static_cast<std::streamsize>(a.bytes.size()));
  fmt::print("model {} ({}): {}\n  {}\n", number, a.changes, what, file.string());
  std::fflush(stdout);
}

void attempt(const Options& o, std::uint64_t number, Examples& examples, Shared& shared) {
  Attempt a;
  try {
    a = make(number, examples);
    if (a.bytes.empty()) {
      ++shared.unwritten;
      return;
    }
    if (o.show) complain(o, number, a, "about to run");
    if (o.compare) {
      const std::string change = change_by_passes(a);
      if (change.empty()) return;
      ++shared.complaints;
      return complain(o, number, a, change);
    }
    run(number, a, shared);
  } catch (const Error& e) {
    if (o.show) fmt::print("  {}\n", e.what());
    if (e.code() != ErrorCode::internal) return;
    ++shared.complaints;
    complain(o, number, a, e.what());
  } catch (const std::exception& e) {
    ++shared.complaints;
    complain(o, number, a, fmt::format("an exception that says nothing: {}", e.what()));
  }
}

// In a process of its own; returns how it ended.
int child(const Options& o, std::uint64_t first, std::uint64_t end, Shared& shared) {
  std::fflush(stdout);
  const pid_t pid = ::fork();
  if (pid < 0) fail(ErrorCode::runtime_failure, "cannot start a process: {}", std::strerror(errno));
  if (pid == 0) {
    Examples examples(o.cases);
    for (std::uint64_t number = first; number < end; ++number) {
      shared.at = number;
      ::alarm(o.timeout);
      attempt(o, number, examples, shared);
    }
    std::fflush(stdout);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

// The model that ended a process, written by another one that makes it alone.
void save(const Options& o, std::uint64_t number, const std::string& what) {
  std::fflush(stdout);
  const pid_t pid = ::fork();
  if (pid == 0) {
    Examples examples(o.cases);
    complain(o, number, make(number, examples), what);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (status != 0) fmt::print("model {}: {}, and again while it is made\n", number, what);
}

std::string ended(int status, unsigned timeout) {
  if (WIFEXITED(status)) return fmt::format("a sanitizer's report (exit code {})", WEXITSTATUS(status));
  if (WTERMSIG(status) == SIGALRM) return fmt::format("took longer than {} s", timeout);
  return fmt::format("crashed: {}", ::strsignal(WTERMSIG(status)));
}

int run_all(const Options& o) {
  void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail(ErrorCode::out_of_memory, "no shared memory");
  Shared& shared = *new (memory) Shared{};
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  std::uint64_t next = o.first;
  const std::uint64_t end = o.first + o.count;
  while (next < end && (o.seconds == 0 || elapsed() < o.seconds)) {
    const std::uint64_t stop = std::min(end, next + kBatch);
    const int status = child(o, next, stop, shared);
    next = status == 0 ? stop : shared.at + 1;
    if (status == 0) continue;
    ++shared.complaints;
    save(o, shared.at, ended(status, o.timeout));
  }
  const std::uint64_t made = next - o.first, complaints = shared.complaints;
  fmt::print(
      "{} models of {} examples in {:.0f} s: {} ran, {} opened and failed to run, {} cannot be written, the others are refused; "
      "{} complaints\n",
      made, o.cases.size(), elapsed(), shared.ran.load(), shared.refused.load(), shared.unwritten.load(), complaints);
  return complaints == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_all(parse(argc, argv));
  } catch (const std::exception& e) {
    fmt::print(stderr, "error: {}\n", e.what());
    return 2;
  }
}
