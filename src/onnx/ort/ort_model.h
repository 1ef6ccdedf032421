#pragma once
// Models in ONNX Runtime's own format: .ort files.

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/tools_api.h"
#include "graph/graph.h"
#include "tensor/pb.h"

namespace sdx {

// Checks the format's mark, which follows the first four bytes.
bool is_ort_model(std::string_view data);

// The model as a ModelProto, but for the content of large tensors, which it names as external data: those that `content` has.
struct OrtModel {
  std::string proto;
  std::unique_ptr<ExternalData> content;
  std::optional<std::string> notice;  // what was left out
};

// Everything is checked before it is believed. `owner` keeps the bytes alive, as do tensors that view them. What a graph may be
// rewritten to when it is loaded (saved runtime optimisations) is left out: it changes no result. Throws Error(invalid_model):
// damaged, or a version that is not known; Error(out_of_memory) where a small file spells out far more than it holds.
OrtModel read_ort_model(std::span<const std::byte> data, std::shared_ptr<const void> owner);

// The whole file. All values need types, which inference knows. Throws Error(invalid_argument): 2 GB or more, or a value whose
// type the format cannot say.
SDX_TOOLS_API std::string write_ort_model(const Model& model);

}  // namespace sdx
