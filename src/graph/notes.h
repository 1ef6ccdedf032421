#pragma once
// Attributes that the engine puts on nodes of its own accord. No file has them: the writer leaves them out.

#include <string_view>

namespace sdx {

inline constexpr std::string_view kNotePrefix = "sdx:";
// On Loop and Scan, types: for each output that stacks one element per turn, the type of an element; unknown for other outputs.
inline constexpr const char* kElementTypes = "sdx:element_types";

}  // namespace sdx
