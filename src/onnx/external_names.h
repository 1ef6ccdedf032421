#pragma once
// Lists the further files that a model consists of.

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>

#include "base/tools_api.h"

namespace sdx {

// Whether the body or a default of a serialised FunctionProto names external data. Throws protozero::exception if it is damaged.
bool names_external_data(std::string_view function);

// The files beside it that an ONNX model names as external data, as plain names ("w.bin" for "./sub/../w.bin", slashes for
// backslashes), whether or not they are there.
// Reads no weights. Throws Error(invalid_model) when the file is not an ONNX model, or names a file outside its folder.
SDX_TOOLS_API std::set<std::string> external_names(const std::filesystem::path& model);

// The sizes of the model's file and of these together, in bytes; those that are not there count nothing. Throws as that does.
SDX_TOOLS_API std::uint64_t model_file_bytes(const std::filesystem::path& model);

}  // namespace sdx
