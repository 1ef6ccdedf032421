#pragma once
// OperatorSetIdProto.

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sdx {

// "ai.onnx" and "" are one domain: "".
inline std::string canonical_domain(std::string_view domain) { return domain == "ai.onnx" ? std::string() : std::string(domain); }

// Adds one import. Where a domain is imported twice, the newer version counts, as in other engines; a conflict gives a warning.
// Throws Error(invalid_model): version newer than this build knows.
void read_opset(std::string_view message, std::map<std::string, int>& opsets, std::vector<std::string>& warnings);
// Throws Error(invalid_model) when a version is below 1.
void check_opsets(const std::map<std::string, int>& opsets);

}  // namespace sdx
