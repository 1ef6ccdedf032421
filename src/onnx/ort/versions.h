#pragma once
// When operators changed.

#include <string_view>

namespace sdx {

// The opset version since which ONNX has had the operator as it is in `version`: by this, other engines choose kernels. 1 for
// operators of domains that have one version, and for unknown ones.
int since_version(std::string_view domain, std::string_view name, int version);

}  // namespace sdx
