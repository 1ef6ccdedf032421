#pragma once
// Attributes of GgmlMatMul and GgmlGather.

#include <string_view>

#include "ops/signature.h"
#include "tensor/ggml.h"

namespace sdx::ops {

struct GgmlAttrs {
  std::string_view type;  // "q4_1": a GgmlFormat's name
  std::int64_t k = 0;     // elements of a row

  void fields(auto& f) {
    f.required("type", type);
    f.required("K", k);
  }
};

struct GgmlRows {
  const GgmlFormat* format;
  std::int64_t k;
  std::int64_t bytes;  // of a row
};
// Throws Error(invalid_model) for an unknown type and a K that is not a whole number of blocks.
GgmlRows ggml_rows(const GgmlAttrs& attr);

}  // namespace sdx::ops
