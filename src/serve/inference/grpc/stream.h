#pragma once
// ModelStreamInfer: one call with many requests.

#include "calls.h"
#include "inference.grpc.pb.h"

namespace sdx::serve {

// Answers requests one at a time, in the order of arrival: a client that wants more at once opens more streams. Models of tensors
// give one answer to each, language models one for each piece of their text, with a mark on the last. Deletes itself.
grpc::ServerBidiReactor<inference::ModelInferRequest, inference::ModelStreamInferResponse>* new_stream(
    Calls& calls, grpc::CallbackServerContext* context);

}  // namespace sdx::serve
