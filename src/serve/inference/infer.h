#pragma once
// One inference, whatever its transport: HTTP's JSON and binary form, and gRPC's messages, are converted to this and back.

#include <functional>
#include <string>
#include <vector>

#include <sdx/session.hpp>

#include "serve/models/catalog.h"

namespace sdx::serve {

struct RequestedOutput {
  std::string name;
  bool binary = false;       // HTTP: behind the JSON
  std::int64_t classes = 0;  // this many of the best instead of the values
};

struct InferRequest {
  std::string model, version, id;
  NamedValues inputs;
  std::vector<RequestedOutput> outputs;  // empty: all
  bool binary_outputs = false;           // HTTP: of outputs that say nothing
  RunOptions run;                        // timeout, cancelling
};

struct InferOutput {
  RequestedOutput asked;
  Tensor tensor;
};

struct InferResult {
  ModelPtr model;
  std::vector<InferOutput> outputs;
  std::exception_ptr error;  // null: it went well
  BatchTimes times;
};

// Asks the model's batcher; `done` is called once, from this thread or another. Loads the model first where it must. Throws where
// the request cannot even be asked; then `done` is not called.
void infer(Catalog& catalog, InferRequest request, std::function<void(InferResult)> done);

// A configuration's max_batch_size is a promise about memory: larger requests are refused, as Triton does. Of a model of tensors.
// Throws Error(invalid_argument).
void check_batch(const LoadedModel& model, const NamedValues& inputs);

// Classifies: "0.826453:281:tabby" for the best `classes` of each sample of an output of scores. BYTES[classes], or
// BYTES[samples, classes]. Throws Error(invalid_argument) for outputs that are not numbers.
Tensor classify(const Tensor& scores, std::int64_t classes, bool has_batch, const std::vector<std::string>& labels);

// The HTTP status of an error, and "Retry-After" in seconds if another attempt may succeed (else 0).
struct ErrorMeaning {
  int status = 500;
  int retry_after = 0;
  std::string message;
};
ErrorMeaning meaning_of(const std::exception_ptr& error);

}  // namespace sdx::serve
