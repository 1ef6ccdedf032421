#pragma once
// Dynamic batching: requests of one model that come close together become one run.

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sdx/session.hpp>

namespace sdx::serve {

struct BatchOptions {
  std::int64_t max_batch_size = 1;                     // samples of one run; 1: no batching
  std::vector<std::int64_t> preferred{};               // sizes with which a run starts at once
  std::chrono::microseconds max_queue_delay{0};        // that the first request waits for others at most
  int instances = 1;                                   // runs at the same time
  int queue = 256;                                     // requests that wait; more are refused
  std::optional<std::chrono::milliseconds> timeout{};  // of a request, with its waiting
  // The input that tells tokens from padding (1 and 0), for models whose requests differ in length: inputs with an open second
  // extent are filled up with zeros to the longest, and outputs cut back. "": only requests of equal shapes come together.
  std::string mask_input{};
};

// The times of one request.
struct BatchTimes {
  std::chrono::nanoseconds queue{0}, input{0}, infer{0}, output{0};
  std::int64_t batch = 1;  // samples of the run that it was in
};

struct BatchStatistics {
  struct Duration {
    std::uint64_t count = 0, ns = 0;
  };
  Duration success, fail, queue, input, infer, output;
  std::uint64_t inferences = 0, executions = 0;  // samples; runs
  std::int64_t last_inference_ms = 0;            // since 1970
  int pending = 0;
  struct OfSize {
    std::int64_t size = 0;
    Duration input, infer, output;
  };
  std::vector<OfSize> sizes;  // of the first 1024 that came
};

// Too many requests wait.
class Overloaded : public Error {
 public:
  using Error::Error;
};

// The end of a request.
struct BatchResult {
  NamedValues outputs;
  std::exception_ptr error;  // null: it went well
  BatchTimes times;
};
using BatchDone = std::function<void(BatchResult)>;

// Thread-safe. Requests come together where all their values are tensors of equal types and extents but for the first one, which
// all of a request's inputs have in common. Strings, types of less than a byte, values bound to the caller's memory, and models
// without a batch run alone.
class Batcher {
 public:
  // `has_batch`: the first extent of all inputs and outputs is the batch. A model whose outputs turn out to have another first
  // extent than its inputs is run without joining from then on.
  Batcher(std::shared_ptr<const Session> session, bool has_batch, const BatchOptions& options);
  ~Batcher();  // answers what waits
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // Blocks. `wanted`: names of outputs; empty: all. Throws Overloaded where `queue` requests wait,
  // Error(deadline_exceeded), Error(cancelled), and what the run throws: a request that fails in a batch is run again alone, so
  // that it fails for its own faults only.
  NamedValues run(const NamedValues& inputs, const std::vector<std::string>& wanted, const RunOptions& options = {},
                  BatchTimes* times = nullptr);

  // The same without waiting, but where an instance is idle and nothing is to be waited for: then the model runs on this thread.
  // `done` is called once, from this thread or another, and must be quick and throw nothing. Throws Overloaded where `queue`
  // requests wait, and Error(invalid_argument) for outputs that the model does not have; then `done` is not called.
  void submit(NamedValues inputs, std::vector<std::string> wanted, const RunOptions& options, BatchDone done);

  BatchStatistics statistics() const;
  const Session& session() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sdx::serve
