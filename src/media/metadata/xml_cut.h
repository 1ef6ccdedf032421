#pragma once
// Parts of an XML text taken out of it; everything else stays byte for byte.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sdx::media {

// The prefixes that the text binds to a namespace, wherever it does; "" among them: elements without a prefix are of it.
std::vector<std::string> prefixes_of(std::string_view xml, std::string_view space);

// Without the elements (with all that they hold) and the attributes of which `unwanted` says so, by their qualified names. Empty
// where the text is not well-formed as far as that had to be looked at.
std::optional<std::string> cut_out(std::string_view xml, const std::function<bool(std::string_view name)>& unwanted);

}  // namespace sdx::media
