#pragma once
// Weights for ONNX files that other engines read as well: MatMulNBits, GatherBlockQuantized, MatMul.

#include <memory>

#include "text/model/network/decoder_graph.h"

namespace sdx::text {

enum class FileWeights {
  as_stored,  // every value exactly: codes, scales and minimums of blocks as they are; floats as float32
  float32,
  float16,  // and the network computes in float16
  int8,     // rounded anew, in blocks of 32 with a scale each
  int4,
};

std::unique_ptr<WeightStyle> weights_for_file(std::shared_ptr<const TensorFiles> file, FileWeights style);

}  // namespace sdx::text
