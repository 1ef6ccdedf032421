#pragma once
// Reads ONNX files into Models: the whole format up to IR version 14. Files in ONNX Runtime's own format are recognised by their
// content and read as well (ort/ort_model.h).

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include "base/system/mapped_file.h"
#include "base/tools_api.h"
#include "graph/graph.h"

namespace sdx {

struct GivenData;

// The newest IR version that is read (onnx.proto of ONNX 1.23).
inline constexpr std::int64_t kNewestIrVersion = 14;

// Maps the file and reads it; constants are views of the map where possible (their owner keeps it alive).
//
// What a Model holds afterwards:
//  - every graph is sorted and passes Graph::verify(); names of values outside a subgraph that it uses are its captures;
//  - an initializer that is listed as a graph input too is, from IR version 4 on, a default that the caller may override: the
//    value has both `constant` and `is_input`, and is in inputs(). Before IR version 4 every initializer had to be listed, so
//    there it is a constant and dropped from inputs(), as other engines do;
//  - calls of model-local functions are still nodes: see inline_functions() in functions.h;
//  - sparse constants are dense; quantization annotations, doc strings of nodes, and device configurations are dropped;
//    training information is dropped with a warning.
//
// Throws Error(io) and Error(invalid_model | not_implemented | out_of_memory) naming the file, and the node where one is
// at fault. Memory taken is a small multiple of the file's size, and at most 256 MiB more for sparse tensors.
// `copied`: see MappedFile::open(); external data of up to 64 MiB in total are copied too, with MappedFile::kAll all of them.
// `given`: weights in place of external data; may be null.
SDX_TOOLS_API Model read_model(const std::filesystem::path& path, std::size_t copied = MappedFile::kCopied,
                               const GivenData* given = nullptr);

// The same from memory. `owner` keeps the bytes alive; null: they are copied first. External data are looked for in
// `base_dir`; where that is empty, only those that are given are found.
SDX_TOOLS_API Model read_model(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                               const std::filesystem::path& base_dir, std::size_t copied = MappedFile::kCopied,
                               const GivenData* given = nullptr);

}  // namespace sdx
