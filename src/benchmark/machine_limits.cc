#include "benchmark/machine_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/system/cpu_features.h"
#include "base/system/mapped_file.h"
#include "base/text/json_text.h"
#include "benchmark/load.h"
#include "benchmark/machine.h"
#include "cache/folder.h"
#include "kernels/cpu/simd/limits_simd.h"

namespace sdx::benchmark {
namespace {

// Short enough to fall between two time slices of other processes, long enough for the clock.
constexpr double kWindowNs = 2e6;
constexpr int kWindows = 40;
// Memory for all threads together exceeds the last-level caches of most machines; each thread has between 8 and 64 MB.
std::int64_t floats_to_read(int threads) {
  constexpr std::int64_t kAll = std::int64_t{1} << 26, kLeast = std::int64_t{1} << 21, kMost = std::int64_t{1} << 24;
  return std::clamp(kAll / threads, kLeast, kMost) / 4096 * 4096;
}

// Work per nanosecond in the best window.
template <class F>
double best_rate(int windows, const F& work) {
  double best = 0;
  for (int i = 0; i < windows; ++i) {
    const std::int64_t start = now_ns();
    const double done = work();
    const auto took = static_cast<double>(std::max<std::int64_t>(1, now_ns() - start));
    best = std::max(best, done / took);
  }
  return best;
}

double multiply_adds() {
  std::int64_t rounds = 16;
  while (true) {
    const std::int64_t start = now_ns();
    cpu::fma_rounds(rounds);
    if (static_cast<double>(now_ns() - start) > kWindowNs / 2) break;
    rounds *= 2;
  }
  return best_rate(kWindows, [&] { return static_cast<double>(cpu::fma_rounds(rounds)); });
}

double reading(const std::vector<float>& memory) {
  return best_rate(kWindows / 8, [&] {
    [[maybe_unused]] const volatile float sum = cpu::read_once(memory.data(), static_cast<std::int64_t>(memory.size()));
    return static_cast<double>(memory.size() * sizeof(float));
  });
}

MachineLimits measure_limits(int threads) {
  std::vector<double> fma(static_cast<std::size_t>(threads)), read(fma.size());
  const auto everywhere = [&](auto&& work) {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < fma.size(); ++i) others.emplace_back([&work, i] { work(i); });
    work(0);
  };
  std::vector<std::vector<float>> memory(fma.size(), std::vector<float>(static_cast<std::size_t>(floats_to_read(threads)), 1.0F));
  everywhere([&](std::size_t i) { fma[i] = multiply_adds(); });
  everywhere([&](std::size_t i) { read[i] = reading(memory[i]); });
  MachineLimits out;
  out.threads = threads;
  for (std::size_t i = 0; i < fma.size(); ++i) {
    out.gflops_per_s += fma[i];
    out.read_gbytes_per_s += read[i];
  }
  return out;
}

using Json = nlohmann::json;

// An empty object where there is no such file, or something else in it.
Json read_all(const std::filesystem::path& file) {
  try {
    Json json = Json::parse(read_file(file, std::size_t{1} << 20), nullptr, false);
    if (json.is_object()) return json;
  } catch (const Error&) {  // the first time
  }
  return Json::object();
}

double number(const Json& entry, const char* key) {
  if (!entry.is_object()) return 0;
  const auto at = entry.find(key);
  if (at == entry.end() || !at->is_number()) return 0;
  const double v = at->get<double>();
  return std::isfinite(v) && v > 0 && v < 1e9 ? v : 0;
}

}  // namespace

MachineLimits machine_limits(int threads) {
  const MachineInfo machine = machine_info();
  const int usable = std::max(1, machine.cores);
  threads = threads > 0 ? std::min(threads, usable) : usable;
  const std::filesystem::path file = cache::cache_file({}, "machine.json");
  const std::string key = fmt::format("{}, {}, {} threads", machine.cpu, machine.isa, threads);
  Json all = file.empty() ? Json::object() : read_all(file);
  const Json kept = all.contains(key) ? all[key] : Json();
  MachineLimits out = measure_limits(threads);
  out.gflops_per_s = std::max(out.gflops_per_s, number(kept, "gflops_per_s"));
  out.read_gbytes_per_s = std::max(out.read_gbytes_per_s, number(kept, "read_gbytes_per_s"));
  all[key] = {{"gflops_per_s", out.gflops_per_s}, {"read_gbytes_per_s", out.read_gbytes_per_s}};
  if (file.empty() || all[key] == kept) return out;
  try {
    cache::make_cache_folder(file.parent_path());
    write_file_atomically(file, dump_json(all, 2) + "\n", cache::kCacheFileMode);
  } catch (const std::exception& e) {
    log::info("the machine's limits are not kept: {}", e.what());
  }
  return out;
}

LimitShare limit_share(const MachineLimits& limits, const std::string& provider, double gflops_per_s, double gbytes_per_s) {
  if (provider != "cpu" || limits.gflops_per_s <= 0 || limits.read_gbytes_per_s <= 0) return {};
  const double compute = gflops_per_s / limits.gflops_per_s, memory = gbytes_per_s / limits.read_gbytes_per_s;
  return memory > compute ? LimitShare{memory, true} : LimitShare{compute, false};
}

}  // namespace sdx::benchmark
