#pragma once
// Counters, gauges and histograms in Prometheus' text format (version 0.0.4).

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sdx::serve {

using Labels = std::vector<std::pair<std::string, std::string>>;  // names must fit [a-zA-Z_][a-zA-Z0-9_]*; values are any UTF-8

// Only grows. Thread-safe.
class Counter {
 public:
  void add(double by = 1.0) noexcept { value_.fetch_add(by, std::memory_order_relaxed); }
  double value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0.0};
};

// Thread-safe.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds);  // upper ends, ascending, without infinity
  void observe(double value) noexcept;

 private:
  friend class Metrics;
  std::vector<double> bounds_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> counts_;  // one more than bounds
  std::atomic<double> sum_{0.0};
};

// Thread-safe. References stay valid as long as the registry.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // The one with this name and these labels, made when first asked for. `help` and the kind are those of the first call.
  Counter& counter(std::string_view name, std::string_view help, const Labels& labels = {});
  Histogram& histogram(std::string_view name, std::string_view help, const std::vector<double>& bounds,
                       const Labels& labels = {});

  struct Sample {
    std::string name;
    Labels labels;
    double value = 0;
  };
  // Adds a source that is asked for its samples at each text(), for figures that are known elsewhere. `kind`: "gauge" or
  // "counter".
  void collect(const std::string& name, const std::string& help, const std::string& kind,
               std::function<std::vector<Sample>()> samples);

  // text() shows the metric `name` as `other` as well: the name that another server's dashboards look for.
  void also_called(std::string name, std::string other);

  std::string text() const;

 private:
  struct Impl;
  void write(std::string& out, const std::string& name, const void* family) const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sdx::serve
