#include "session/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <sstream>

#include "base/error.h"
#include "base/log.h"
#include "base/suggest.h"
#include "base/system/cpu_features.h"
#include "base/system/mapped_file.h"
#include "cache/folder.h"
#include "providers/interface/machine.h"
#include "providers/table.h"
#include "session/background_compile.h"
#include "session/background_run.h"
#include "tensor/types.h"

namespace sdx {
namespace {

using Clock = std::chrono::steady_clock;

// Enough for a steady median; longer than a second in all only for models of which even three runs take that.
constexpr int kFewestRounds = 3, kMostRounds = 50;
constexpr double kEnoughMs = 1000;
// Reduced precision (float16, TensorFloat-32, bfloat16 on accelerators) stays below it on usual models; a wrong result does not.
constexpr double kTolerance = 0.01;
// What is faster by less is noise: then the first of the chain stays.
constexpr double kNoise = 0.03;

double ms_since(Clock::time_point start) { return std::chrono::duration<double, std::milli>(Clock::now() - start).count(); }

// Not cryptographic: tells files apart at the speed of memory.
std::uint64_t mix(std::uint64_t hash, std::span<const std::byte> bytes) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15ULL;
  const auto step = [](std::uint64_t h, std::uint64_t word) {
    h = (h ^ word) * kOdd;
    return h ^ (h >> 29);
  };
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, 8);
    hash = step(hash, word);
  }
  std::uint64_t rest = 0;
  if (at < bytes.size()) std::memcpy(&rest, bytes.data() + at, bytes.size() - at);
  return step(step(hash, rest), bytes.size());
}

std::uint64_t mix(std::uint64_t hash, const std::string& text) {
  return mix(hash, std::as_bytes(std::span<const char>(text.data(), text.size())));
}

std::uint64_t hash_model(const ModelSource& source) {
  if (source.path.empty()) return mix(1, source.bytes);
  const auto file = MappedFile::open(source.path);
  const std::uint64_t hash = mix(1, file->bytes());
  release_mapped_pages(file->bytes().data(), file->bytes().size());
  return hash;
}

std::string machine_text() {
  const MachineFacts& m = this_machine();
  const std::string processor = processor_name().substr(0, 200);
  return fmt::format("{} {} threads; {}; {}; {}; driver {}", processor.empty() ? "unknown processor" : processor,
                     ThreadPool::shared()->threads(), join(m.nvidia_gpus), join(m.amd_gpus), join(m.intel_gpus), m.nvidia_driver);
}

double number_at(const Tensor& t, std::int64_t i) {
  switch (t.dtype()) {
    case DataType::float32: return static_cast<const float*>(t.data())[i];
    case DataType::float64: return static_cast<const double*>(t.data())[i];
    case DataType::float16: return half_to_float(static_cast<const std::uint16_t*>(t.data())[i]);
    default: {  // bfloat16: the upper half of a float32
      const std::uint32_t bits = std::uint32_t{static_cast<const std::uint16_t*>(t.data())[i]} << 16;
      float x = 0;
      std::memcpy(&x, &bits, 4);
      return x;
    }
  }
}

std::string float_disagreement(const Tensor& a, const Tensor& b) {
  double largest = 0, difference = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const double x = number_at(a, i), y = number_at(b, i);
    if (std::isnan(x) != std::isnan(y)) return std::isnan(y) ? "has NaN" : "has no NaN";
    if (std::isnan(x) || x == y) continue;
    if (std::isinf(x) || std::isinf(y)) return "has other infinities";
    largest = std::max(largest, std::abs(x));
    difference = std::max(difference, std::abs(x - y));
  }
  if (difference <= kTolerance * std::max(largest, 1e-6)) return "";
  return fmt::format("by {:.3g}, the largest magnitude is {:.3g}", difference, largest);
}

bool is_float(DataType t) {
  return t == DataType::float32 || t == DataType::float64 || t == DataType::float16 || t == DataType::bfloat16;
}

std::string disagreement(const std::vector<Value>& reference, const std::vector<Value>& got, const Core& core, bool values_too) {
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const std::string why = disagreement(reference[i], got[i], values_too);
    if (!why.empty()) return fmt::format("output '{}' {}", core.outputs[i].name, why);
  }
  return "";
}

struct Candidate {
  std::shared_ptr<const Engine> engine;
  std::vector<double> times;
};

// `limit`: how long a provider may take; 0: as long as it wants.
std::vector<Value> run_in_time(const std::shared_ptr<const Engine>& engine, const Request& request,
                               std::chrono::milliseconds limit) {
  if (limit.count() <= 0) {
    RunEnv env;
    env.stop = request.stop;
    return engine->run(request, env);
  }
  BackgroundRun run(engine, request);
  const std::string* at = nullptr;
  const auto outcome = run.wait(Clock::now() + limit, [&](const std::string* provider) {
    at = provider;
    return provider != nullptr && *provider != "cpu";
  });
  if (outcome == BackgroundRun::Outcome::done) return run.results();
  const std::string name = at == nullptr ? "" : *at;
  run.abandon(nullptr);
  request.stop.check();
  if (outcome == BackgroundRun::Outcome::late) {
    fail(ErrorCode::runtime_failure, "{} has not answered after {:.3f} s", name, std::chrono::duration<double>(limit).count());
  }
  fail(ErrorCode::deadline_exceeded, "the run took longer than its deadline allows");
}

std::vector<Value> timed_run(Candidate& c, const Request& request, std::chrono::milliseconds limit, bool count) {
  const auto start = Clock::now();
  std::vector<Value> results = run_in_time(c.engine, request, limit);
  if (count) c.times.push_back(ms_since(start));
  return results;
}

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const std::size_t n = times.size();
  return n % 2 == 1 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) / 2;
}

bool stops(const Error& e) { return e.code() == ErrorCode::cancelled || e.code() == ErrorCode::deadline_exceeded; }

// One line, so that a file of lines can hold it.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  return text;
}

}  // namespace

std::string disagreement(const Value& reference, const Value& got, bool values_too) {
  if (reference.type_string() != got.type_string()) {
    return fmt::format("is {}, cpu says {}", got.type_string(), reference.type_string());
  }
  if (!values_too || !reference.is_tensor()) return "";
  const Tensor& a = reference.tensor();
  const Tensor& b = got.tensor();
  std::string why;
  if (is_float(a.dtype())) {
    why = float_disagreement(a, b);
  } else if (a.dtype() == DataType::string) {
    const auto x = a.values<std::string>(), y = b.values<std::string>();
    if (!std::equal(x.begin(), x.end(), y.begin())) why = "in a text";
  } else if (a.bytes() != 0 && std::memcmp(a.data(), b.data(), a.bytes()) != 0) {
    why = "in a number";
  }
  return why.empty() ? "" : "differs from cpu: " + why;
}

Selection with_more_candidates(Selection s, const SessionOptions& options) {
  const bool left_to_us = std::all_of(options.providers.begin(), options.providers.end(),
                                      [](const std::string& p) { return canonical_provider(p) == "auto"; });
  if (!left_to_us || options.runtime == "native") return s;
  for (const char* name : {"openvino", "ort:cpu"}) {
    const bool there = std::any_of(s.chain.begin(), s.chain.end(), [&](const Provider* p) { return p->name() == name; });
    const Provider* provider = find_provider(name);
    if (there || provider == nullptr || !look_at_provider(name, options, Effort::quick).available) continue;
    s.chain.insert(s.chain.end() - 1, provider);
    s.devices.insert(s.devices.end() - 1, "");
  }
  return s;
}

Selection chain_from(const Selection& selection, std::size_t first) {
  Selection s;
  s.why = selection.why;
  s.fallbacks = selection.fallbacks;
  const auto skip = static_cast<std::ptrdiff_t>(first);
  s.chain.assign(selection.chain.begin() + skip, selection.chain.end());
  s.devices.assign(selection.devices.begin() + skip, selection.devices.end());
  return s;
}

std::filesystem::path decision_file(const Core& core, const Selection& selection) {
  const SessionOptions& o = core.options;
  std::uint64_t hash = hash_model(core.source);
  hash = mix(hash, machine_text());
  hash = mix(hash, std::string(version()));
  for (const Provider* p : selection.chain) {
    const std::string name(p->name());
    hash = mix(hash, name + " " + look_at_provider(name, o, Effort::quick).version);
  }
  for (const auto& [provider, list] : o.provider_options) {
    for (const auto& [key, value] : list) hash = mix(hash, provider + "." + key + "=" + value);
  }
  for (const auto& [symbol, extent] : o.dimensions) hash = mix(hash, fmt::format("{}={}", symbol, extent));
  hash = mix(hash, fmt::format("{} {} {}", o.threads, o.optimize, join(o.disabled_passes)));
  return cache_file(o.cache_folder, fmt::format("measured/{:016x}.txt", hash));
}

std::optional<Measurement> read_decision(const std::filesystem::path& file, const Selection& selection) {
  constexpr std::size_t kMostBytes = 1 << 20;
  std::error_code none;
  if (!std::filesystem::exists(file, none)) return std::nullopt;
  Measurement m;
  try {
    std::istringstream in(read_file(file, kMostBytes));
    std::string line;
    if (!std::getline(in, line) || line != "sdx measured 1") return std::nullopt;
    while (std::getline(in, line)) {
      std::istringstream words(line);
      std::string key;
      words >> key;
      if (key == "candidate") {
        MeasuredProvider c;
        words >> c.provider >> c.median_ms >> c.compile_ms;
        std::getline(words >> std::ws, c.note);
        m.candidates.push_back(std::move(c));
        continue;
      }
      std::string rest;
      std::getline(words >> std::ws, rest);
      if (key == "chosen") m.chosen = rest;
      if (key == "inputs") m.inputs = rest;
      if (key == "when") m.when = rest;
    }
  } catch (const Error& e) {
    log::debug("a measured decision cannot be read: {}", e.what());
    return std::nullopt;
  }
  std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now(), none);  // used: `sdx cache ls` tells when
  for (MeasuredProvider& c : m.candidates) c.chosen = c.provider == m.chosen;
  const bool known =
      std::any_of(selection.chain.begin(), selection.chain.end(), [&](const Provider* p) { return p->name() == m.chosen; });
  return known ? std::optional(std::move(m)) : std::nullopt;
}

void write_decision(const std::filesystem::path& file, const Measurement& m) {
  make_cache_folder(file.parent_path());
  std::string text = fmt::format("sdx measured 1\nlabel {}\nchosen {}\ninputs {}\nwhen {}\nmachine {}\n",
                                 one_line(m.model.empty() ? m.chosen : m.model + ": " + m.chosen), m.chosen, one_line(m.inputs),
                                 m.when, one_line(machine_text()));
  for (const MeasuredProvider& c : m.candidates) {
    text += fmt::format("candidate {} {:.6f} {:.3f} {}\n", c.provider, c.median_ms, c.compile_ms, one_line(c.note));
  }
  write_file_atomically(file, text, kCacheFileMode);
}

Measurement measure(const std::shared_ptr<Core>& core, const Selection& selection, const Request& request,
                    std::shared_ptr<const Engine>& winner) {
  Measurement m;
  std::vector<Candidate> candidates(selection.chain.size());
  m.candidates.resize(candidates.size());
  std::vector<Value> reference;
  bool repeatable = true;
  const std::chrono::milliseconds limit = core->options.provider_timeout, forever{0};
  // From the back: the last is what the others are held against.
  for (std::size_t i = candidates.size(); i-- > 0;) {
    MeasuredProvider& found = m.candidates[i];
    const bool last = i + 1 == candidates.size();
    found.provider = selection.chain[i]->name();
    const auto start = Clock::now();
    try {
      LateProvider late;
      candidates[i].engine = compile_in_time(core, chain_from(selection, i), late);
      found.compile_ms = ms_since(start);
      if (!candidates[i].engine->runs(found.provider)) {
        found.note = "takes no node of this model";
        candidates[i].engine.reset();
        continue;
      }
      std::vector<Value> results = timed_run(candidates[i], request, last ? forever : limit, false);
      if (last) {
        reference = std::move(results);
        repeatable = disagreement(reference, timed_run(candidates[i], request, forever, false), *core, true).empty();
        continue;
      }
      found.note = disagreement(reference, results, *core, repeatable);
    } catch (const Error& e) {
      if (last || stops(e)) throw;
      found.note = e.what();
    }
    if (!found.note.empty()) candidates[i].engine.reset();
  }
  const auto start = Clock::now();
  for (int round = 0; round < kMostRounds && (round < kFewestRounds || ms_since(start) < kEnoughMs); ++round) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (!candidates[i].engine) continue;
      try {
        timed_run(candidates[i], request, i + 1 == candidates.size() ? forever : limit, true);
      } catch (const Error& e) {
        if (i + 1 == candidates.size() || stops(e)) throw;
        m.candidates[i].note = e.what();
        candidates[i].engine.reset();
      }
    }
  }
  std::size_t best = candidates.size() - 1;
  for (std::size_t i = candidates.size(); i-- > 0;) {
    if (!candidates[i].engine) continue;
    m.candidates[i].median_ms = median(candidates[i].times);
    // From the back to the front: of two that are alike the one that comes first in the chain is taken.
    if (m.candidates[i].median_ms < m.candidates[best].median_ms * (i < best ? 1 + kNoise : 1)) best = i;
  }
  m.candidates[best].chosen = true;
  m.chosen = m.candidates[best].provider;
  m.model = core->source.path.filename().string();
  winner = candidates[best].engine;
  for (std::size_t i = 0; i < core->inputs.size(); ++i) {
    m.inputs += fmt::format("{}{}: {}", m.inputs.empty() ? "" : ", ", core->inputs[i].name, request.values[i].type_string());
  }
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  m.when = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour,
                       utc.tm_min, utc.tm_sec);
  return m;
}

std::string summary(const Measurement& m) {
  std::vector<const MeasuredProvider*> order;
  for (const MeasuredProvider& c : m.candidates) order.push_back(&c);
  std::stable_sort(order.begin(), order.end(), [](const MeasuredProvider* a, const MeasuredProvider* b) {
    return (a->median_ms > 0 ? a->median_ms : HUGE_VAL) < (b->median_ms > 0 ? b->median_ms : HUGE_VAL);
  });
  std::string out;
  for (const MeasuredProvider* c : order) {
    out += out.empty() ? "" : ", ";
    out +=
        c->median_ms > 0 ? fmt::format("{} {:.3f} ms", c->provider, c->median_ms) : fmt::format("{} ({})", c->provider, c->note);
  }
  return out;
}

}  // namespace sdx
