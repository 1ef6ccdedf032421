#pragma once
// OperatorSetIdProto.

#include <map>
#include <string>
#include <string_view>

namespace sdx {

// "ai.onnx" and "" are one domain: "".
inline std::string canonical_domain(std::string_view domain) { return domain == "ai.onnx" ? std::string() : std::string(domain); }

// Adds one import. Throws Error(invalid_model): version below 1, newer than this build knows, or another one than was imported
// before.
void read_opset(std::string_view message, std::map<std::string, int>& opsets);

}  // namespace sdx
