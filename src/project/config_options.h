#pragma once
// The options of sessions in the section `runtime` of a project file.

#include <string_view>
#include <vector>

#include <sdx/session.hpp>

#include "project/yaml/yaml.h"

namespace sdx {

// Runs `read`; its errors get the value's place.
template <class Read>
auto at_place(const YamlValue& value, Read&& read) {
  try {
    return read();
  } catch (const Error& e) {
    value.fail(e.message());
  }
}

// All keys of the section.
std::vector<std::string_view> runtime_keys();

// Sets what the section says, `providers` apart. Throws Error(invalid_argument) at the value's place.
void read_session_options(const YamlValue& section, SessionOptions& options);

}  // namespace sdx
