// How fast a language model answers several requests at once: docs/language-models.md, "Many texts at once".
//
//   sdx_bench_generation MODEL [--threads N] [--prompt N] [--tokens N] [--rounds N] [--only SEQUENCES] [--cache-type TYPE]
//   [--accuracy-level N] [--conversations N]

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sdx/error.hpp>
#include <sdx/generation_engine.hpp>
#include <string>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;
using Ids = std::vector<sdx::TokenId>;

struct Arguments {
  std::string model, cache_type;
  int threads = 0, prompt = 64, tokens = 64, rounds = 3, only = 0, conversations = 0, accuracy_level = 0;
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Of all threads: what others on the machine take does not count.
double cpu_seconds() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; };
  return seconds(u.ru_utime) + seconds(u.ru_stime);
}

long resident_kib() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("VmRSS:")) return std::atol(line.c_str() + 6);
  }
  return 0;
}

Ids some_tokens(const sdx::LanguageModel& model, int count, unsigned seed) {
  Ids ids;
  const auto most = static_cast<unsigned>(std::max<std::int64_t>(300, model.info().vocabulary));
  for (int i = 0; i < count; ++i) ids.push_back(((seed + 1) * 7919U + static_cast<unsigned>(i) * 104729U) % (most - 260) + 255);
  return ids;
}

sdx::GenerationRequest asking(Ids prompt, int tokens) {
  sdx::GenerationRequest r;
  r.prompt = std::move(prompt);
  r.settings.max_tokens = tokens;
  r.settings.sampling.greedy = true;
  r.settings.ignore_end = true;
  return r;
}

// Tokens per second of the answers' steps, with prompts computed before: the best of several rounds.
void throughput(const sdx::LanguageModel& model, const Arguments& a) {
  std::printf("%9s %12s %12s %18s\n", "sequences", "tokens/s", "of one", "CPU ms per token");
  double one = 0;
  for (const int n : {1, 2, 4, 8, 16}) {
    if (a.only > 0 && n != a.only) continue;
    double best = 0, least_cpu = 1e9;
    for (int round = 0; round < a.rounds; ++round) {
      sdx::GenerationEngine engine(model, {.max_sequences = n, .share_prefixes = false});
      std::vector<sdx::GenerationTask> tasks;
      std::vector<Clock::time_point> first(static_cast<std::size_t>(n));
      std::vector<double> cpu(static_cast<std::size_t>(n));
      for (int i = 0; i < n; ++i) {
        sdx::GenerationRequest r = asking(some_tokens(model, a.prompt, static_cast<unsigned>(i)), a.tokens);
        r.on_token = [&, i, begun = false](const sdx::GeneratedToken&) mutable {
          if (!begun) first[static_cast<std::size_t>(i)] = Clock::now(), cpu[static_cast<std::size_t>(i)] = cpu_seconds();
          begun = true;
          return true;
        };
        tasks.push_back(engine.submit(std::move(r)));
      }
      for (const sdx::GenerationTask& t : tasks) t.wait();
      // From when the last prompt is computed: all are under way until the first of them ends.
      const double steps = static_cast<double>(n) * static_cast<double>(a.tokens - 1);
      best = std::max(best, steps / seconds_since(*std::max_element(first.begin(), first.end())));
      least_cpu = std::min(least_cpu, (cpu_seconds() - *std::max_element(cpu.begin(), cpu.end())) / steps * 1000);
    }
    if (n == 1) one = best;
    std::printf("%9d %12.1f %11.2fx %18.2f\n", n, best, best / one, least_cpu);
  }
}

// How long a prompt waits for its first token while others answer.
void first_tokens(const sdx::LanguageModel& model, const Arguments& a) {
  std::printf("\n%9s %28s\n", "under way", "first token of a prompt, ms");
  for (const int n : {0, 1, 4, 8}) {
    sdx::GenerationEngine engine(model, {.max_sequences = 16});
    std::vector<sdx::GenerationTask> others;
    for (int i = 0; i < n; ++i) others.push_back(engine.submit(asking(some_tokens(model, 16, static_cast<unsigned>(i)), 100000)));
    while (engine.status().generated_tokens < static_cast<std::uint64_t>(n)) std::this_thread::yield();
    double best = 1e9;
    for (int round = 0; round < a.rounds; ++round) {
      const Ids prompt = some_tokens(model, a.prompt, 1000 + static_cast<unsigned>(round));
      best = std::min(best, engine.submit(asking(prompt, 1)).wait().first_token_ms);
    }
    for (const sdx::GenerationTask& t : others) t.cancel();
    std::printf("%9d %28.1f\n", n, best);
  }
}

void conversations(const sdx::LanguageModel& model, const Arguments& a) {
  std::printf("\n%13s %14s %16s\n", "conversations", "resident MiB", "cache MiB");
  sdx::GenerationEngine engine(model, {.max_sequences = 8, .cache_bytes = std::uint64_t{128} << 20});
  std::vector<sdx::GenerationTask> tasks;
  for (int i = 0; i < a.conversations; ++i) {
    tasks.push_back(engine.submit(asking(some_tokens(model, 20 + i % 30, static_cast<unsigned>(i)), 8)));
    if (tasks.size() == 16) {
      for (const sdx::GenerationTask& t : tasks) t.wait();
      tasks.clear();
    }
    if ((i + 1) % std::max(1, a.conversations / 8) == 0) {
      std::printf("%13d %14.1f %16.1f\n", i + 1, static_cast<double>(resident_kib()) / 1024,
                  static_cast<double>(engine.status().cache_bytes) / (1 << 20));
    }
  }
}

int usage() {
  std::fprintf(stderr,
               "usage: sdx_bench_generation MODEL [--threads N] [--prompt N] [--tokens N] [--rounds N] [--only SEQUENCES] "
               "[--cache-type TYPE] "
               "[--accuracy-level N] [--conversations N]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    int* number = name == "--threads"          ? &a.threads
                  : name == "--prompt"         ? &a.prompt
                  : name == "--tokens"         ? &a.tokens
                  : name == "--rounds"         ? &a.rounds
                  : name == "--only"           ? &a.only
                  : name == "--conversations"  ? &a.conversations
                  : name == "--accuracy-level" ? &a.accuracy_level
                                               : nullptr;
    if (number != nullptr && i + 1 < argc) {
      *number = std::atoi(argv[++i]);
    } else if (name == "--cache-type" && i + 1 < argc) {
      a.cache_type = argv[++i];
    } else if (a.model.empty() && !name.starts_with("-")) {
      a.model = name;
    } else {
      return usage();
    }
  }
  if (a.model.empty() || a.prompt < 1 || a.tokens < 2 || a.rounds < 1) return usage();
  try {
    sdx::LanguageModelOptions options;
    options.session.threads = a.threads;
    options.accuracy_level = a.accuracy_level;
    for (const auto type : {sdx::DataType::float32, sdx::DataType::float16, sdx::DataType::bfloat16, sdx::DataType::int8}) {
      if (sdx::name(type) == a.cache_type) options.cache_type = type;
    }
    const sdx::LanguageModel model = sdx::LanguageModel::load(a.model, options);
    if (a.conversations > 0) {
      conversations(model, a);
      return 0;
    }
    throughput(model, a);
    if (a.only == 0) first_tokens(model, a);
  } catch (const sdx::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
