#pragma once
// POST …/infer: JSON with numbers in it, and Triton's binary form, in which tensors follow the JSON.

#include <memory>
#include <optional>
#include <string_view>

#include "serve/http/message.h"
#include "serve/inference/infer.h"

namespace sdx::serve {

// `header_length`: of Inference-Header-Content-Length; nothing: all of the body is JSON. Binary tensors are views of `body`,
// which `owner` keeps; null: copies. Throws Error(invalid_argument) saying which part of the request is wrong.
InferRequest parse_infer_request(std::string_view body, std::optional<std::size_t> header_length,
                                 const std::shared_ptr<const void>& owner);

// A body without JSON (header length 0) is the model's only input, one sample of it; its type and shape are the model's.
void add_raw_input(InferRequest& request, const LoadedModel& model, std::string_view body,
                   const std::shared_ptr<const void>& owner);

// 200, with the outputs. Throws Error where one cannot be written.
Response infer_response(const InferRequest& request, const InferResult& result);

}  // namespace sdx::serve
