#pragma once
// Parts of an XML text taken out of it; everything else stays byte for byte.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdx::media {

// The prefixes that are bound to a namespace anywhere in the text. They include "" if elements without a prefix belong to it.
std::vector<std::string> prefixes_of(std::string_view xml, std::string_view space);

// Removes the elements (with their content) and attributes for whose qualified names `unwanted` is true. Empty if the text is not
// well-formed, as far as it had to be read.
std::optional<std::string> cut_out(std::string_view xml, const std::function<bool(std::string_view name)>& unwanted);

}  // namespace sdx::media
