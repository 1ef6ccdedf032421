#pragma once
// One combination of backend, threads and batch size: a session that is loaded, run in rounds, and closed; here or in a process
// of its own.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <sdx/runner.hpp>

#include "benchmark/load.h"
#include "inputs/index_bounds.h"

namespace sdx::benchmark {

struct CellOptions {
  std::filesystem::path model;
  SessionOptions session;
  bool allow_fallback = false;
  NamedValues inputs;  // by name; the rest is made up in `shapes`
  std::vector<std::pair<std::string, Shape>> shapes;
  inputs::IndexBounds bounds;  // of the made-up ones
  std::uint64_t seed = 0;
  LoadOptions load;
  bool profile = false;
  std::filesystem::path trace;
  bool quiet = false;  // warnings were given already
};

struct Opened {
  std::string provider, runtime;
  std::vector<std::string> fallbacks, notes;
  std::vector<ProviderNodes> places;
  double load_ms = 0, init_ms = 0;
};

struct Order {
  std::int64_t count = 0;
  std::int64_t duration_ns = 0;  // > 0: instead of count
  std::uint64_t seed = 0;
  bool sequential = false;  // for warm-up: one client, no rate
};

struct Closed {
  double peak_rss_mb = 0;
  std::vector<OperatorTime> operators;
  std::vector<NodeTime> nodes;
};

// The error of a cell. code: a name of ErrorCode, or "crashed".
struct CellError {
  std::string code, message;
};

// Not thread-safe. Members throw CellError.
class Cell {
 public:
  virtual ~Cell() = default;
  virtual Opened open() = 0;
  virtual Load run(const Order& order, const std::function<void(std::int64_t)>& done) = 0;
  // Makes profiles if the options ask for them.
  virtual Closed close() = 0;
};

std::unique_ptr<Cell> make_local_cell(CellOptions options);
// Runs in a process forked from this one, which must have a single thread. `done` is not called there.
std::unique_ptr<Cell> make_isolated_cell(CellOptions options);

// MiB; of this process.
double peak_rss_mb();

}  // namespace sdx::benchmark
