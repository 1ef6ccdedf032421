#pragma once
// A region as an ONNX file in memory.

#include <algorithm>
#include <cstdint>
#include <string>

#include "onnx/writer.h"
#include "providers/interface/provider.h"

namespace sdx {

// `newest_ir`: the highest IR version that the reader knows; 0: any.
inline std::string region_bytes(const Region& region, std::int64_t newest_ir = 0) {
  Model model;
  model.graph = *region.graph;
  model.ir_version = region.model->ir_version;
  if (newest_ir != 0) model.ir_version = std::min(model.ir_version, newest_ir);
  model.producer_name = region.model->producer_name;
  model.opsets = region.model->opsets;
  model.metadata = region.model->metadata;
  return write_model(model);
}

}  // namespace sdx
