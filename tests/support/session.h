#pragma once
// Models as text in sessions, for tests.

#include <gtest/gtest.h>

#include <sdx/sdx.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/writer.h"
#include "support/errors.h"
#include "support/graph_text.h"

namespace sdx::testing {

using Floats = std::vector<float>;

inline Session open(const Model& model, const SessionOptions& options = {}) {
  const std::string bytes = write_model(model);
  return Session::from_bytes(std::as_bytes(std::span<const char>(bytes)), options);
}

inline Session open(std::string_view text, const SessionOptions& options = {}) { return open(parse_model(text), options); }

inline Tensor floats(Shape shape, const Floats& values) {
  return Tensor::of<float>(std::move(shape), std::span<const float>(values));
}

inline Floats elements(const Tensor& t) {
  const auto v = t.values<float>();
  return {v.begin(), v.end()};
}

}  // namespace sdx::testing
