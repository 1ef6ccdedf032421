#pragma once
// Finding a model's inputs and outputs by their names.

#include <string_view>
#include <vector>

#include <sdx/session.hpp>

namespace sdx::serve {

// Null where there is none.
inline const ValueSpec* find_spec(const std::vector<ValueSpec>& specs, std::string_view name) {
  for (const ValueSpec& spec : specs) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

}  // namespace sdx::serve
