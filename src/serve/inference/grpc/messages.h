#pragma once
// gRPC's messages to and from requests and results.

#include "inference.pb.h"
#include "serve/inference/infer.h"

namespace sdx::serve {

// Tensors are views of the message where they can be: it must outlive the request. Throws Error(invalid_argument) saying which
// part is wrong.
InferRequest request_of(const inference::ModelInferRequest& message);

// One text, as an output of one element.
void add_text(inference::ModelInferResponse& message, const std::string& name, const std::string& text);

// Values as raw_output_contents.
void fill_response(inference::ModelInferResponse& message, const std::string& id, const InferResult& result);

}  // namespace sdx::serve
