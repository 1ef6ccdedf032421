#include "session/observe/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>

#include "base/error.h"
#include "base/hash.h"
#include "base/suggest.h"
#include "base/system/cpu_features.h"
#include "cache/folder.h"
#include "providers/interface/machine.h"
#include "providers/table.h"
#include "session/agreement.h"
#include "session/background_compile.h"
#include "session/background_run.h"

namespace sdx::session {
namespace {

using Clock = std::chrono::steady_clock;

// Enough for a steady median. Only models whose three runs take longer than a second exceed it in all.
constexpr int kFewestRounds = 3, kMostRounds = 50;
constexpr double kEnoughMs = 1000;
// A smaller gain is noise: then the first of the chain stays.
constexpr double kNoise = 0.03;

double ms_since(Clock::time_point start) { return std::chrono::duration<double, std::milli>(Clock::now() - start).count(); }

std::string machine_text() {
  const MachineFacts& m = this_machine();
  const std::string processor = processor_name().substr(0, 200);
  return fmt::format("{} {} threads; {}; {}; {}; driver {}", processor.empty() ? "unknown processor" : processor,
                     ThreadPool::shared()->threads(), join(m.nvidia_gpus), join(m.amd_gpus), join(m.intel_gpus), m.nvidia_driver);
}

std::string disagreement(const std::vector<Value>& reference, const std::vector<Value>& got, const SessionContext& context,
                         bool values_too) {
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const std::string why = session::disagreement(reference[i], got[i], values_too);
    if (!why.empty()) return fmt::format("output '{}' {}", context.outputs[i].name, why);
  }
  return "";
}

struct Candidate {
  std::shared_ptr<const CompiledChain> chain;
  std::vector<double> times;
};

// `limit`: the longest time that a provider may take; 0: no limit.
std::vector<Value> run_in_time(const std::shared_ptr<const CompiledChain>& chain, const Request& request,
                               std::chrono::milliseconds limit) {
  if (limit.count() <= 0) {
    plan::RunEnv env;
    env.stop = request.stop;
    return chain->run(request, env);
  }
  BackgroundRun run(chain, request);
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
  std::vector<Value> results = run_in_time(c.chain, request, limit);
  if (count) c.times.push_back(ms_since(start));
  return results;
}

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const std::size_t n = times.size();
  return n % 2 == 1 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) / 2;
}

bool stops(const Error& e) { return e.code() == ErrorCode::cancelled || e.code() == ErrorCode::deadline_exceeded; }

}  // namespace

Selection with_more_candidates(Selection s, const SessionOptions& options) {
  const bool left_to_us = std::all_of(options.providers.begin(), options.providers.end(),
                                      [](const std::string& p) { return canonical_provider(p) == "auto"; });
  if (!left_to_us || options.runtime == Runtime::native) return s;
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

std::filesystem::path decision_file(const SessionContext& context, const Selection& selection) {
  const SessionOptions& o = context.options;
  ContentHash hash;
  if (context.source.path.empty()) {
    hash.add(context.source.bytes);
  } else {
    hash.add_file(context.source.path);
  }
  hash.add(machine_text());
  hash.add(version());
  for (const Provider* p : selection.chain) {
    hash.add(fmt::format("{} {}", p->name(), look_at_provider(std::string(p->name()), o, Effort::quick).version));
  }
  for (const auto& [provider, list] : o.provider_options) {
    for (const auto& [key, value] : list) hash.add(provider + "." + key + "=" + value);
  }
  for (const auto& [symbol, extent] : o.dimensions) hash.add(fmt::format("{}={}", symbol, extent));
  hash.add(fmt::format("{} {} {}", o.threads, o.optimize, join(o.disabled_passes)));
  return cache::cache_file(o.cache_folder, "measured/" + hash.text() + ".txt");
}

std::optional<cache::Decision> decision_for(const std::filesystem::path& file, const Selection& selection) {
  std::optional<cache::Decision> found = cache::read_decision(file);
  const bool known = found && std::any_of(selection.chain.begin(), selection.chain.end(),
                                          [&](const Provider* p) { return p->name() == found->chosen; });
  return known ? found : std::nullopt;
}

cache::Decision measure_providers(const std::shared_ptr<SessionContext>& context, const Selection& selection,
                                  const Request& request, std::shared_ptr<const CompiledChain>& winner) {
  cache::Decision m;
  std::vector<Candidate> candidates(selection.chain.size());
  m.candidates.resize(candidates.size());
  std::vector<Value> reference;
  bool repeatable = true;
  const std::chrono::milliseconds limit = context->options.provider_timeout, forever{0};
  // From the back, because the others are compared with the last.
  for (std::size_t i = candidates.size(); i-- > 0;) {
    MeasuredProvider& found = m.candidates[i];
    const bool last = i + 1 == candidates.size();
    found.provider = selection.chain[i]->name();
    const auto start = Clock::now();
    try {
      LateProvider late;
      candidates[i].chain = compile_in_time(context, chain_from(selection, i), late);
      found.compile_ms = ms_since(start);
      if (!candidates[i].chain->runs(found.provider)) {
        found.note = "runs no node of this model";
        candidates[i].chain.reset();
        continue;
      }
      std::vector<Value> results = timed_run(candidates[i], request, last ? forever : limit, false);
      if (last) {
        reference = std::move(results);
        repeatable = disagreement(reference, timed_run(candidates[i], request, forever, false), *context, true).empty();
        continue;
      }
      found.note = disagreement(reference, results, *context, repeatable);
    } catch (const Error& e) {
      if (last || stops(e)) throw;
      found.note = e.what();
    }
    if (!found.note.empty()) candidates[i].chain.reset();
  }
  const auto start = Clock::now();
  for (int round = 0; round < kMostRounds && (round < kFewestRounds || ms_since(start) < kEnoughMs); ++round) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (!candidates[i].chain) continue;
      try {
        timed_run(candidates[i], request, i + 1 == candidates.size() ? forever : limit, true);
      } catch (const Error& e) {
        if (i + 1 == candidates.size() || stops(e)) throw;
        m.candidates[i].note = e.what();
        candidates[i].chain.reset();
      }
    }
  }
  std::size_t best = candidates.size() - 1;
  for (std::size_t i = candidates.size(); i-- > 0;) {
    if (!candidates[i].chain) continue;
    m.candidates[i].median_ms = median(candidates[i].times);
    // From the back to the front: of two equal ones, the first in the chain is chosen.
    if (m.candidates[i].median_ms < m.candidates[best].median_ms * (i < best ? 1 + kNoise : 1)) best = i;
  }
  m.candidates[best].chosen = true;
  m.chosen = m.candidates[best].provider;
  m.model = context->source.path.filename().string();
  m.machine = machine_text();
  winner = candidates[best].chain;
  for (std::size_t i = 0; i < context->inputs.size(); ++i) {
    m.inputs += fmt::format("{}{}: {}", m.inputs.empty() ? "" : ", ", context->inputs[i].name, request.values[i].type_string());
  }
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  m.when = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour,
                       utc.tm_min, utc.tm_sec);
  return m;
}

std::string summary(const cache::Decision& m) {
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

}  // namespace sdx::session
