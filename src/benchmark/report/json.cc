// Benchmark runs as JSON, and back.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <type_traits>
#include <variant>

#include <sdx/runner.hpp>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/text/json_text.h"
#include "benchmark/statistics.h"
#include "tensor/json.h"

namespace sdx {
namespace {

using namespace benchmark;

using nlohmann::ordered_json;

// A member of T and its name in the file. Lists of these define how T is written and read.
template <class T>
struct Field {
  const char* key;
  std::variant<std::string T::*, std::vector<std::string> T::*, double T::*, int T::*, std::int64_t T::*> member;
};

template <class T, class Member>
constexpr Field<T> at(const char* key, Member T::*member) {
  return {key, member};
}

template <class... Fields>
constexpr auto fields(Fields... list) {
  return std::array{list...};
}

constexpr auto kIteration = fields(at("iter_idx", &IterationRecord::iter_idx), at("t_start_ns", &IterationRecord::t_start_ns),
                                   at("t_end_ns", &IterationRecord::t_end_ns), at("latency_ms", &IterationRecord::latency_ms),
                                   at("round", &IterationRecord::round), at("process", &IterationRecord::process),
                                   at("client", &IterationRecord::client));

constexpr auto kOperator =
    fields(at("op", &OperatorTime::op), at("kernel", &OperatorTime::kernel), at("provider", &OperatorTime::provider),
           at("calls", &OperatorTime::calls), at("ms", &OperatorTime::ms), at("share", &OperatorTime::share),
           at("gflops_per_s", &OperatorTime::gflops_per_s), at("gbytes_per_s", &OperatorTime::gbytes_per_s));

constexpr auto kNode = fields(at("name", &NodeTime::name), at("op", &NodeTime::op), at("kernel", &NodeTime::kernel),
                              at("provider", &NodeTime::provider), at("ms", &NodeTime::ms), at("share", &NodeTime::share),
                              at("gflop", &NodeTime::gflop), at("gbyte", &NodeTime::gbyte),
                              at("gflops_per_s", &NodeTime::gflops_per_s), at("gbytes_per_s", &NodeTime::gbytes_per_s));

constexpr auto kLimits = fields(at("threads", &MachineLimits::threads), at("gflops_per_s", &MachineLimits::gflops_per_s),
                                at("read_gbytes_per_s", &MachineLimits::read_gbytes_per_s));

constexpr auto kProcess = fields(at("median_ms", &ProcessRecord::median_ms), at("fast_ms", &ProcessRecord::fast_ms),
                                 at("load_ms", &ProcessRecord::load_ms), at("init_ms", &ProcessRecord::init_ms),
                                 at("first_run_ms", &ProcessRecord::first_run_ms), at("peak_rss_mb", &ProcessRecord::peak_rss_mb),
                                 at("compute_ms", &ProcessRecord::compute_ms), at("memory_ms", &ProcessRecord::memory_ms));

constexpr auto kRound =
    fields(at("process", &RoundRecord::process), at("median_ms", &RoundRecord::median_ms), at("fast_ms", &RoundRecord::fast_ms),
           at("compute_ms", &RoundRecord::compute_ms), at("memory_ms", &RoundRecord::memory_ms));

constexpr auto kMachine =
    fields(at("cpu", &MachineInfo::cpu), at("isa", &MachineInfo::isa), at("cores", &MachineInfo::cores),
           at("memory_mb", &MachineInfo::memory_mb), at("kernel", &MachineInfo::kernel), at("governor", &MachineInfo::governor),
           at("frequency_mhz", &MachineInfo::frequency_mhz), at("load_average", &MachineInfo::load_average),
           at("steal_percent", &MachineInfo::steal_percent), at("throttle_events", &MachineInfo::throttle_events),
           at("sdx_version", &MachineInfo::sdx_version));

constexpr auto kPlace = fields(at("provider", &ProviderNodes::provider), at("nodes", &ProviderNodes::nodes));

// The identity of a result; written whether or not there are figures.
constexpr auto kSetting =
    fields(at("backend", &BenchResult::backend), at("threads", &BenchResult::threads), at("batch_size", &BenchResult::batch),
           at("clients", &BenchResult::clients), at("rate", &BenchResult::rate), at("provider", &BenchResult::provider),
           at("runtime", &BenchResult::runtime), at("fallbacks", &BenchResult::fallbacks));

constexpr auto kFigures =
    fields(at("throughput", &BenchResult::throughput), at("relative", &BenchResult::relative),
           at("warmup_iterations", &BenchResult::warmup_iterations), at("measure_iterations", &BenchResult::measure_iterations),
           at("load_ms", &BenchResult::load_ms), at("init_ms", &BenchResult::init_ms),
           at("first_run_ms", &BenchResult::first_run_ms), at("peak_rss_mb", &BenchResult::peak_rss_mb));

constexpr auto kTimes =
    fields(at("mean_ms", &Statistics::mean_ms), at("std_ms", &Statistics::std_ms), at("min_ms", &Statistics::min_ms),
           at("max_ms", &Statistics::max_ms), at("median_ms", &Statistics::p50_ms), at("p50_ms", &Statistics::p50_ms),
           at("p90_ms", &Statistics::p90_ms), at("p95_ms", &Statistics::p95_ms), at("p99_ms", &Statistics::p99_ms),
           at("coefficient_of_variation", &Statistics::coefficient_of_variation));

template <class T>
void write_fields(ordered_json& json, const T& from, std::type_identity_t<std::span<const Field<T>>> fields) {
  for (const Field<T>& f : fields) std::visit([&](auto member) { json[f.key] = from.*member; }, f.member);
}

template <class T>
ordered_json object_of(const T& from, std::type_identity_t<std::span<const Field<T>>> fields) {
  ordered_json json = ordered_json::object();
  write_fields(json, from, fields);
  return json;
}

template <class T>
ordered_json list_of(const std::vector<T>& items, std::type_identity_t<std::span<const Field<T>>> fields) {
  ordered_json out = ordered_json::array();
  for (const T& item : items) out.push_back(object_of(item, fields));
  return out;
}

ordered_json iterations_json(const std::vector<IterationRecord>& iterations) {
  ordered_json out = list_of(iterations, kIteration);
  for (std::size_t i = 0; i < iterations.size(); ++i) out[i]["phase"] = iterations[i].warmup ? "warmup" : "measure";
  return out;
}

ordered_json result_json(const BenchResult& r) {
  ordered_json j = object_of(r, kSetting);
  j["nodes_on"] = list_of(r.places, kPlace);
  j["error"] = nullptr;
  if (!r.error.empty()) {
    j["error"] = r.error;
    j["error_code"] = r.error_code;
    j["notes"] = r.notes;
    return j;
  }
  const Statistics& s = r.statistics;
  write_fields(j, s, kTimes);
  j["median_ci95_ms"] = nullptr;
  if (has_interval(s)) j["median_ci95_ms"] = {s.median_low_ms, s.median_high_ms};
  j["outliers_iqr"] = s.outliers_iqr;
  j["outliers_mad"] = s.outliers_mad;
  j["round_medians_ms"] = s.round_medians_ms;
  write_fields(j, r, kFigures);
  j["processes"] = list_of(r.processes, kProcess);
  j["rounds"] = list_of(r.rounds, kRound);
  j["between_processes_cv"] = r.between_processes_cv;
  j["notes"] = r.notes;
  j["limits"] = r.limits.threads == 0 ? ordered_json() : object_of(r.limits, kLimits);
  j["operators"] = list_of(r.operators, kOperator);
  j["nodes"] = list_of(r.nodes, kNode);
  j["latencies_ms"] = s.latencies_ms;
  j["iterations"] = iterations_json(r.iterations);
  return j;
}

// Reads fields with messages that say where.
class Reader {
 public:
  Reader(const nlohmann::json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) fail(ErrorCode::invalid_argument, "{}: expected an object", where_);
  }

  const nlohmann::json* find(const char* key) const {
    const auto it = object_.find(key);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }
  void read(const char* key, std::string& out) const {
    const auto* v = find(key);
    if (v == nullptr) return;
    if (!v->is_string()) wrong(key, "text");
    out = v->get<std::string>();
  }
  template <class T>
    requires std::is_arithmetic_v<T>
  void read(const char* key, T& out) const {
    const auto* v = find(key);
    if (v == nullptr) return;
    if (!v->is_number()) wrong(key, "a number");
    const double d = v->get<double>();
    // Beyond this an integer field would overflow; no count of a benchmark comes near.
    if (std::is_integral_v<T> && !(d > -9e15 && d < 9e15)) wrong(key, "a sensible number");
    out = std::is_integral_v<T> && v->is_number_integer() ? static_cast<T>(v->get<std::int64_t>()) : static_cast<T>(d);
  }
  void numbers(const char* key, std::vector<double>& out) const {
    for_each(key, [&](const nlohmann::json& item, const std::string& where) {
      if (!item.is_number()) fail(ErrorCode::invalid_argument, "{}: expected a number", where);
      out.push_back(item.get<double>());
    });
  }
  void read(const char* key, std::vector<std::string>& out) const {
    for_each(key, [&](const nlohmann::json& item, const std::string& where) {
      if (!item.is_string()) fail(ErrorCode::invalid_argument, "{}: expected text", where);
      out.push_back(item.get<std::string>());
    });
  }
  template <class F>
  void for_each(const char* key, const F& f) const {
    const auto* v = find(key);
    if (v == nullptr) return;
    if (!v->is_array()) wrong(key, "a list");
    for (std::size_t i = 0; i < v->size(); ++i) f((*v)[i], fmt::format("{}.{}[{}]", where_, key, i));
  }
  template <class T>
  void fields(T& out, std::type_identity_t<std::span<const Field<T>>> list) const {
    for (const Field<T>& f : list) {
      std::visit([&](auto member) { read(f.key, out.*member); }, f.member);
    }
  }
  [[noreturn]] void wrong(const char* key, const char* expected) const {
    fail(ErrorCode::invalid_argument, "{}: '{}' must be {}", where_, key, expected);
  }

 private:
  const nlohmann::json& object_;
  std::string where_;
};

// The objects of a list that is T's.
template <class T>
std::vector<T> read_list(const Reader& r, const char* key, std::type_identity_t<std::span<const Field<T>>> fields) {
  std::vector<T> out;
  r.for_each(
      key, [&](const nlohmann::json& item, const std::string& where) { Reader(item, where).fields(out.emplace_back(), fields); });
  return out;
}

IterationRecord read_iteration(const nlohmann::json& json, const std::string& where) {
  IterationRecord i;
  const Reader r(json, where);
  r.fields(i, kIteration);
  std::string phase = "measure";
  r.read("phase", phase);
  if (phase != "measure" && phase != "warmup") r.wrong("phase", "\"warmup\" or \"measure\"");
  i.warmup = phase == "warmup";
  return i;
}

std::vector<double> read_latencies(const Reader& r) {
  std::vector<double> latencies;
  r.numbers("latencies_ms", latencies);
  for (const double v : latencies) {
    if (!(v >= 0)) r.wrong("latencies_ms", "a list of numbers that are not negative");
  }
  return latencies;
}

BenchResult read_result(const nlohmann::json& json, const std::string& where) {
  BenchResult b;
  const Reader r(json, where);
  r.read("provider", b.backend);  // where there is no backend
  r.fields(b, kSetting);
  b.places = read_list<ProviderNodes>(r, "nodes_on", kPlace);
  r.read("error", b.error);
  r.read("error_code", b.error_code);
  r.read("notes", b.notes);
  r.for_each("iterations", [&](const auto& item, const std::string& at) { b.iterations.push_back(read_iteration(item, at)); });
  b.operators = read_list<OperatorTime>(r, "operators", kOperator);
  b.nodes = read_list<NodeTime>(r, "nodes", kNode);
  b.processes = read_list<ProcessRecord>(r, "processes", kProcess);
  b.rounds = read_list<RoundRecord>(r, "rounds", kRound);
  r.read("between_processes_cv", b.between_processes_cv);
  if (const auto* limits = r.find("limits")) Reader(*limits, where + ".limits").fields(b.limits, kLimits);
  // Everything that follows from the latencies is worked out again: a file may lack fields.
  b.statistics = summarize(read_latencies(r), lengths_by(b.iterations, &IterationRecord::round),
                           lengths_by(b.iterations, &IterationRecord::process));
  b.measure_iterations = static_cast<std::int64_t>(b.statistics.latencies_ms.size());
  r.fields(b, kFigures);
  if (b.statistics.latencies_ms.empty() && b.error.empty()) b.error = "the file has no latencies";
  return b;
}

BenchInput read_input(const nlohmann::json& json, const std::string& where) {
  BenchInput i;
  const Reader r(json, where);
  r.read("name", i.name);
  r.read("dtype", i.dtype);
  r.read("values", i.values);
  std::vector<double> shape;
  r.numbers("shape", shape);
  for (const double d : shape) {
    if (!(d >= 0 && d < 9e15)) r.wrong("shape", "a list of extents");
    i.shape.push_back(static_cast<std::int64_t>(d));
  }
  return i;
}

}  // namespace

std::string to_json(const BenchResult& result) { return dump_json(result_json(result)); }

std::string to_json(const BenchRun& run) {
  ordered_json j{{"model", run.model},
                 {"model_hash", run.model_hash},
                 {"created", run.created},
                 {"machine", object_of(run.machine, kMachine)}};
  j["inputs"] = ordered_json::array();
  for (const BenchInput& i : run.inputs)
    j["inputs"].push_back({{"name", i.name}, {"dtype", i.dtype}, {"shape", i.shape}, {"values", i.values}});
  j["notes"] = run.notes;
  j["results"] = ordered_json::array();
  for (const BenchResult& r : run.results) j["results"].push_back(result_json(r));
  return dump_json(j) + "\n";
}

BenchRun read_benchmark(const std::filesystem::path& path) {
  const std::string what = "'" + path.string() + "'";
  const nlohmann::json json = parse_json(read_file(path), what);
  const Reader r(json, what);
  BenchRun run;
  r.read("model", run.model);
  r.read("model_hash", run.model_hash);
  r.read("created", run.created);
  r.read("notes", run.notes);
  if (const auto* machine = r.find("machine")) Reader(*machine, what + ".machine").fields(run.machine, kMachine);
  r.for_each("inputs", [&](const auto& item, const std::string& at) { run.inputs.push_back(read_input(item, at)); });
  if (const auto* single = r.find("benchmark")) {
    run.results.push_back(read_result(*single, what + ".benchmark"));
    if (const auto* report = r.find("report"); report != nullptr && run.model.empty())
      Reader(*report, what + ".report").read("model", run.model);
  } else if (r.find("results") == nullptr) {
    fail(ErrorCode::invalid_argument, "{} is not a benchmark: it has neither 'results' nor 'benchmark'", what);
  }
  r.for_each("results", [&](const auto& item, const std::string& at) { run.results.push_back(read_result(item, at)); });
  return run;
}

}  // namespace sdx
