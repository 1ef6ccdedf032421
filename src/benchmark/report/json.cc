// Benchmark runs as JSON, and back.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "benchmark/statistics.h"
#include "tensor/json.h"

namespace sdx {
namespace {

using namespace bench;

using nlohmann::ordered_json;

ordered_json iteration_json(const IterationRecord& i) {
  return {{"iter_idx", i.iter_idx}, {"t_start_ns", i.t_start_ns},
          {"t_end_ns", i.t_end_ns}, {"latency_ms", i.latency_ms},
          {"round", i.round},       {"process", i.process},
          {"client", i.client},     {"phase", i.warmup ? "warmup" : "measure"}};
}

ordered_json operator_json(const OperatorTime& o) {
  return {{"op", o.op}, {"kernel", o.kernel}, {"provider", o.provider},         {"calls", o.calls},
          {"ms", o.ms}, {"share", o.share},   {"gflops_per_s", o.gflops_per_s}, {"gbytes_per_s", o.gbytes_per_s}};
}

ordered_json node_json(const NodeTime& n) {
  return {{"name", n.name},
          {"op", n.op},
          {"kernel", n.kernel},
          {"provider", n.provider},
          {"ms", n.ms},
          {"share", n.share},
          {"gflop", n.gflop},
          {"gbyte", n.gbyte},
          {"gflops_per_s", n.gflops_per_s},
          {"gbytes_per_s", n.gbytes_per_s}};
}

ordered_json limits_json(const MachineLimits& m) {
  if (m.threads == 0) return nullptr;
  return {{"threads", m.threads}, {"gflops_per_s", m.gflops_per_s}, {"read_gbytes_per_s", m.read_gbytes_per_s}};
}

ordered_json process_json(const ProcessRecord& p) {
  return {{"median_ms", p.median_ms},   {"fast_ms", p.fast_ms},           {"load_ms", p.load_ms},
          {"init_ms", p.init_ms},       {"first_run_ms", p.first_run_ms}, {"peak_rss_mb", p.peak_rss_mb},
          {"compute_ms", p.compute_ms}, {"memory_ms", p.memory_ms}};
}

ordered_json round_json(const RoundRecord& r) {
  return {{"process", r.process},
          {"median_ms", r.median_ms},
          {"fast_ms", r.fast_ms},
          {"compute_ms", r.compute_ms},
          {"memory_ms", r.memory_ms}};
}

template <class List, class F>
ordered_json list_of(const List& items, const F& f) {
  ordered_json out = ordered_json::array();
  for (const auto& item : items) out.push_back(f(item));
  return out;
}

ordered_json result_json(const BenchResult& r) {
  const Statistics& s = r.statistics;
  ordered_json j{{"backend", r.backend}, {"threads", r.threads},     {"batch_size", r.batch},
                 {"clients", r.clients}, {"rate", r.rate},           {"provider", r.provider},
                 {"runtime", r.runtime}, {"fallbacks", r.fallbacks}, {"error", nullptr}};
  if (!r.error.empty()) {
    j["error"] = r.error;
    j["error_code"] = r.error_code;
    j["notes"] = r.notes;
    return j;
  }
  j.update(ordered_json{{"mean_ms", s.mean_ms},
                        {"std_ms", s.std_ms},
                        {"min_ms", s.min_ms},
                        {"max_ms", s.max_ms},
                        {"median_ms", s.p50_ms},
                        {"p50_ms", s.p50_ms},
                        {"p90_ms", s.p90_ms},
                        {"p95_ms", s.p95_ms},
                        {"p99_ms", s.p99_ms},
                        {"coefficient_of_variation", s.coefficient_of_variation},
                        {"median_ci95_ms", {s.median_low_ms, s.median_high_ms}},
                        {"outliers_iqr", s.outliers_iqr},
                        {"outliers_mad", s.outliers_mad},
                        {"round_medians_ms", s.round_medians_ms},
                        {"throughput", r.throughput},
                        {"relative", r.relative},
                        {"warmup_iterations", r.warmup_iterations},
                        {"measure_iterations", r.measure_iterations},
                        {"load_ms", r.load_ms},
                        {"init_ms", r.init_ms},
                        {"first_run_ms", r.first_run_ms},
                        {"peak_rss_mb", r.peak_rss_mb},
                        {"processes", list_of(r.processes, process_json)},
                        {"rounds", list_of(r.rounds, round_json)},
                        {"between_processes_cv", r.between_processes_cv},
                        {"notes", r.notes},
                        {"limits", limits_json(r.limits)},
                        {"operators", list_of(r.operators, operator_json)},
                        {"nodes", list_of(r.nodes, node_json)},
                        {"latencies_ms", s.latencies_ms},
                        {"iterations", list_of(r.iterations, iteration_json)}});
  return j;
}

ordered_json machine_json(const MachineInfo& m) {
  return {{"cpu", m.cpu},
          {"isa", m.isa},
          {"cores", m.cores},
          {"memory_mb", m.memory_mb},
          {"kernel", m.kernel},
          {"governor", m.governor},
          {"frequency_mhz", m.frequency_mhz},
          {"load_average", m.load_average},
          {"steal_percent", m.steal_percent},
          {"throttle_events", m.throttle_events},
          {"sdx_version", m.sdx_version}};
}

std::string dump(const ordered_json& j) { return j.dump(-1, ' ', false, ordered_json::error_handler_t::replace); }

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
  void text(const char* key, std::string& out) const {
    const auto* v = find(key);
    if (v == nullptr) return;
    if (!v->is_string()) wrong(key, "text");
    out = v->get<std::string>();
  }
  template <class T>
  void number(const char* key, T& out) const {
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
  void texts(const char* key, std::vector<std::string>& out) const {
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
  [[noreturn]] void wrong(const char* key, const char* expected) const {
    fail(ErrorCode::invalid_argument, "{}: '{}' must be {}", where_, key, expected);
  }

 private:
  const nlohmann::json& object_;
  std::string where_;
};

IterationRecord read_iteration(const nlohmann::json& json, const std::string& where) {
  IterationRecord i;
  const Reader r(json, where);
  r.number("iter_idx", i.iter_idx);
  r.number("t_start_ns", i.t_start_ns);
  r.number("t_end_ns", i.t_end_ns);
  r.number("latency_ms", i.latency_ms);
  r.number("round", i.round);
  r.number("process", i.process);
  r.number("client", i.client);
  std::string phase = "measure";
  r.text("phase", phase);
  if (phase != "measure" && phase != "warmup") r.wrong("phase", "\"warmup\" or \"measure\"");
  i.warmup = phase == "warmup";
  return i;
}

OperatorTime read_operator(const nlohmann::json& json, const std::string& where) {
  OperatorTime o;
  const Reader r(json, where);
  r.text("op", o.op);
  r.text("kernel", o.kernel);
  r.text("provider", o.provider);
  r.number("calls", o.calls);
  r.number("ms", o.ms);
  r.number("share", o.share);
  r.number("gflops_per_s", o.gflops_per_s);
  r.number("gbytes_per_s", o.gbytes_per_s);
  return o;
}

NodeTime read_node(const nlohmann::json& json, const std::string& where) {
  NodeTime n;
  const Reader r(json, where);
  r.text("name", n.name);
  r.text("op", n.op);
  r.text("kernel", n.kernel);
  r.text("provider", n.provider);
  r.number("ms", n.ms);
  r.number("share", n.share);
  r.number("gflop", n.gflop);
  r.number("gbyte", n.gbyte);
  r.number("gflops_per_s", n.gflops_per_s);
  r.number("gbytes_per_s", n.gbytes_per_s);
  return n;
}

ProcessRecord read_process(const nlohmann::json& json, const std::string& where) {
  ProcessRecord p;
  const Reader r(json, where);
  r.number("median_ms", p.median_ms);
  r.number("fast_ms", p.fast_ms);
  r.number("load_ms", p.load_ms);
  r.number("init_ms", p.init_ms);
  r.number("first_run_ms", p.first_run_ms);
  r.number("peak_rss_mb", p.peak_rss_mb);
  r.number("compute_ms", p.compute_ms);
  r.number("memory_ms", p.memory_ms);
  return p;
}

RoundRecord read_round(const nlohmann::json& json, const std::string& where) {
  RoundRecord r;
  const Reader reader(json, where);
  reader.number("process", r.process);
  reader.number("median_ms", r.median_ms);
  reader.number("fast_ms", r.fast_ms);
  reader.number("compute_ms", r.compute_ms);
  reader.number("memory_ms", r.memory_ms);
  return r;
}

MachineLimits read_limits(const nlohmann::json& json, const std::string& where) {
  MachineLimits m;
  const Reader r(json, where);
  r.number("threads", m.threads);
  r.number("gflops_per_s", m.gflops_per_s);
  r.number("read_gbytes_per_s", m.read_gbytes_per_s);
  return m;
}

BenchResult read_result(const nlohmann::json& json, const std::string& where) {
  BenchResult b;
  const Reader r(json, where);
  r.text("provider", b.provider);
  b.backend = b.provider;
  r.text("backend", b.backend);
  r.number("threads", b.threads);
  r.number("batch_size", b.batch);
  r.number("clients", b.clients);
  r.number("rate", b.rate);
  r.text("error", b.error);
  r.text("error_code", b.error_code);
  r.text("runtime", b.runtime);
  r.texts("fallbacks", b.fallbacks);
  r.texts("notes", b.notes);
  r.for_each("iterations", [&](const auto& item, const std::string& at) { b.iterations.push_back(read_iteration(item, at)); });
  r.for_each("nodes", [&](const auto& item, const std::string& at) { b.nodes.push_back(read_node(item, at)); });
  r.for_each("processes", [&](const auto& item, const std::string& at) { b.processes.push_back(read_process(item, at)); });
  r.for_each("rounds", [&](const auto& item, const std::string& at) { b.rounds.push_back(read_round(item, at)); });
  r.number("between_processes_cv", b.between_processes_cv);
  if (const auto* limits = r.find("limits")) b.limits = read_limits(*limits, where + ".limits");
  r.for_each("operators", [&](const auto& item, const std::string& at) { b.operators.push_back(read_operator(item, at)); });
  std::vector<double> latencies;
  r.numbers("latencies_ms", latencies);
  for (const double v : latencies) {
    if (!(v >= 0)) r.wrong("latencies_ms", "a list of numbers that are not negative");
  }
  // Everything that follows from the latencies is worked out again: a file may lack fields.
  b.statistics = summarize(std::move(latencies), lengths_by(b.iterations, &IterationRecord::round),
                           lengths_by(b.iterations, &IterationRecord::process));
  r.number("throughput", b.throughput);
  r.number("relative", b.relative);
  r.number("warmup_iterations", b.warmup_iterations);
  b.measure_iterations = static_cast<std::int64_t>(b.statistics.latencies_ms.size());
  r.number("measure_iterations", b.measure_iterations);
  r.number("load_ms", b.load_ms);
  r.number("init_ms", b.init_ms);
  r.number("first_run_ms", b.first_run_ms);
  r.number("peak_rss_mb", b.peak_rss_mb);
  if (b.statistics.latencies_ms.empty() && b.error.empty()) b.error = "the file has no latencies";
  return b;
}

MachineInfo read_machine(const nlohmann::json& json, const std::string& where) {
  MachineInfo m;
  const Reader r(json, where);
  r.text("cpu", m.cpu);
  r.text("isa", m.isa);
  r.text("kernel", m.kernel);
  r.text("governor", m.governor);
  r.text("sdx_version", m.sdx_version);
  r.number("cores", m.cores);
  r.number("memory_mb", m.memory_mb);
  r.number("frequency_mhz", m.frequency_mhz);
  r.number("load_average", m.load_average);
  r.number("steal_percent", m.steal_percent);
  r.number("throttle_events", m.throttle_events);
  return m;
}

BenchInput read_input(const nlohmann::json& json, const std::string& where) {
  BenchInput i;
  const Reader r(json, where);
  r.text("name", i.name);
  r.text("dtype", i.dtype);
  std::vector<double> shape;
  r.numbers("shape", shape);
  for (const double d : shape) {
    if (!(d >= 0 && d < 9e15)) r.wrong("shape", "a list of extents");
    i.shape.push_back(static_cast<std::int64_t>(d));
  }
  return i;
}

}  // namespace

std::string to_json(const BenchResult& result) { return dump(result_json(result)); }

std::string to_json(const BenchRun& run) {
  ordered_json j{{"model", run.model}, {"created", run.created}, {"machine", machine_json(run.machine)}};
  j["inputs"] = list_of(run.inputs, [](const BenchInput& i) {
    return ordered_json{{"name", i.name}, {"dtype", i.dtype}, {"shape", i.shape}};
  });
  j["notes"] = run.notes;
  j["results"] = list_of(run.results, result_json);
  return dump(j) + "\n";
}

BenchRun read_benchmark(const std::filesystem::path& path) {
  const std::string what = "'" + path.string() + "'";
  const nlohmann::json json = parse_json(read_file(path), what);
  const Reader r(json, what);
  BenchRun run;
  r.text("model", run.model);
  r.text("created", run.created);
  r.texts("notes", run.notes);
  if (const auto* machine = r.find("machine")) run.machine = read_machine(*machine, what + ".machine");
  r.for_each("inputs", [&](const auto& item, const std::string& at) { run.inputs.push_back(read_input(item, at)); });
  if (const auto* single = r.find("benchmark")) {
    run.results.push_back(read_result(*single, what + ".benchmark"));
    if (const auto* report = r.find("report"); report != nullptr && run.model.empty())
      Reader(*report, what + ".report").text("model", run.model);
  } else if (r.find("results") == nullptr) {
    fail(ErrorCode::invalid_argument, "{} is no benchmark: it has neither 'results' nor 'benchmark'", what);
  }
  r.for_each("results", [&](const auto& item, const std::string& at) { run.results.push_back(read_result(item, at)); });
  return run;
}

}  // namespace sdx
