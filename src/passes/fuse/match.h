#pragma once
// Questions of patterns about operators' attributes.

#include <cstdint>
#include <initializer_list>

#include "graph/edit.h"
#include "ops/tensor/signatures.h"

namespace sdx::fuse {

// Whether `perm` of a Transpose equals `wanted`.
inline bool has_perm(const Node& n, std::initializer_list<std::int64_t> wanted) {
  return ops::parse<ops::TransposeAttrs>(n).is(wanted);
}

}  // namespace sdx::fuse
