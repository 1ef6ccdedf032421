#pragma once
// Pictures and sound as inputs: what the flags leave open follows from the input's declared shape and type.

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include <sdx/session.hpp>

#include "cli/values/inputs.h"

namespace sdx::cli {

Value image_input(const std::string& path, const ValueSpec* spec, const InputFlags& flags);
Value sound_input(const std::string& path, const ValueSpec* spec, const InputFlags& flags);
// The same from the content of standard input.
Value image_input(std::span<const std::byte> bytes, const ValueSpec* spec, const InputFlags& flags);
Value sound_input(std::span<const std::byte> bytes, const ValueSpec* spec, const InputFlags& flags);

// WIDTHxHEIGHT, or one number for both, 1 to 65535 each. Throws UsageError, which names the option.
std::pair<int, int> parse_sides(const std::string& text, const char* option);

}  // namespace sdx::cli
