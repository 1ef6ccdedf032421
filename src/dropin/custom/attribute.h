#pragma once
// Attributes of nodes as programs see them.

#include <string>

#include "dropin/abi.h"
#include "graph/attribute.h"

namespace sdx::dropin {

struct OrtOpAttr {
  std::string name;
  AttributeValue value;
};

OrtOpAttrType attribute_type(const AttributeValue& value) noexcept;

// Copies `text` with its NUL for a program that first asks for the size with a null `out`. `what` names it in the message if
// *size is too small; *size receives the required size in any case.
void copy_text(const std::string& text, char* out, std::size_t* size, const char* what);

}  // namespace sdx::dropin
