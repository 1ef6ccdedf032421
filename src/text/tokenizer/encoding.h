#pragma once
// Operations on whole encodings.

#include <sdx/tokenizer.hpp>

namespace sdx::text {

void set_sequence(Encoding& encoding, std::size_t sequence);
// Adds another encoding behind this one; overflowing parts are combined, each with each.
void merge_into(Encoding& encoding, Encoding other);
// Truncates to `most` tokens; the rest goes to `overflowing`. Throws Error(invalid_argument).
void truncate(Encoding& encoding, std::size_t most, const Truncation& settings);
// One text, or two. Throws Error(invalid_argument).
void truncate(Encoding& first, Encoding* second, const Truncation& settings);
void pad(Encoding& encoding, std::size_t length, const Padding& settings);
void pad(std::span<Encoding> batch, const Padding& settings);

// One token that is not of the text.
void add_special(Encoding& encoding, std::uint32_t id, const std::string& token, std::uint32_t type_id);
void append_part(Encoding& to, const Encoding& from, std::size_t begin, std::size_t end);

}  // namespace sdx::text
