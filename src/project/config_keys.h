#pragma once
// The keys of a project file, by section. docs/sdx.schema.json lists the same; a test compares them.

#include <array>
#include <string_view>

namespace sdx::config_keys {

inline constexpr std::array<std::string_view, 11> kProject{"name",          "version",        "description", "model",
                                                           "inputs",        "outputs",        "runtime",     "serving",
                                                           "preprocessing", "postprocessing", "metadata"};
inline constexpr std::array<std::string_view, 3> kModel{"source", "format", "version"};
inline constexpr std::array<std::string_view, 7> kInput{"name",       "type",        "shape",        "required",
                                                        "max_length", "description", "preprocessing"};
inline constexpr std::array<std::string_view, 11> kOutput{
    "name", "type", "shape", "description", "labels", "activation", "softmax", "sigmoid", "top_k", "threshold", "postprocessing"};
// Beside the options of sessions, which src/session/options/option_table.cc lists.
inline constexpr std::array<std::string_view, 3> kRuntimeOwn{"gpu", "timeout", "batch_size"};
inline constexpr std::array<std::string_view, 2> kGpu{"memory", "backend"};
inline constexpr std::array<std::string_view, 8> kServing{
    "host", "port", "max_batch_size", "batch_size", "max_queue_delay_ms", "timeout", "workers", "max_workers"};
inline constexpr std::array<std::string_view, 16> kPreprocessing{
    "resize", "crop", "fit", "interpolation", "fill",        "layout", "color",     "normalize",
    "scale",  "mean", "std", "custom",        "sample_rate", "mono",   "tokenizer", "max_length"};
inline constexpr std::array<std::string_view, 7> kPostprocessing{"activation", "softmax",   "sigmoid", "axis",
                                                                 "top_k",      "threshold", "labels"};

}  // namespace sdx::config_keys
