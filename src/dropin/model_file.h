#pragma once
// Facts that an ONNX file states besides its graph. Only the lengths of the format's fields are followed; the rest is not read.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dropin/objects.h"
#include "session/open.h"

namespace sdx::dropin {

struct InputFacts {
  std::string denotation;  // of the type
  bool has_shape = false;
  std::vector<std::pair<std::string, std::string>> extents;  // name and denotation, "" where there is none
  std::vector<std::int64_t> numbers;                         // parallel to extents: -1 where there is none
  bool sparse = false;
};

struct ModelFacts {
  std::int64_t ir_version = 0;
  OrtModelMetadata metadata;
  std::string producer_version;
  std::map<std::string, InputFacts, std::less<>> values;  // inputs and outputs of the graph
  std::set<std::string, std::less<>> unread;              // inputs that no node reads
};

// Nothing for bytes that are no ONNX model (a damaged file, an .ort file).
std::optional<ModelFacts> read_facts(std::string_view model);

// The graph's weights, and whether their data are in another file; empty for bytes that are no ONNX model.
std::map<std::string, bool, std::less<>> weights_of(std::string_view model);

// Appends the axes of inputs that carry the denotation ("DATA_BATCH") and no number.
void add_extents(const ModelFacts& facts, std::string_view denotation, std::int64_t extent,
                 std::vector<session::FixedExtent>& to);

}  // namespace sdx::dropin
