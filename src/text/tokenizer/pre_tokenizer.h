#pragma once
// Cuts text into words before the model sees it: steps in order, each one kind with its settings.

#include <vector>

#include "text/tokenizer/aligned.h"
#include "text/tokenizer/pattern.h"

namespace sdx::text {

// The treatment of a match when text is split.
enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };
enum class Prepend { first, never, always };

struct PreTokenizerStep {
  enum class Kind {
    bert,
    byte_level,
    char_delimiter,
    metaspace,
    whitespace,
    whitespace_split,
    split,
    punctuation,
    digits,
    unicode_scripts,
    fixed_length
  };
  Kind kind = Kind::bert;
  bool add_prefix_space = true, use_regex = true;  // byte_level
  char32_t character = ' ';                        // char_delimiter, metaspace
  Prepend prepend = Prepend::always;               // metaspace
  bool split = true;                               // metaspace
  Pattern pattern;                                 // split
  Behavior behavior = Behavior::isolated;          // split, punctuation
  bool invert = false;                             // split
  bool individual = false;                         // digits
  std::uint64_t length = 5;                        // fixed_length
};

// A word, or an added token that was found in the text.
struct Split {
  Span range;  // of PreTokenized::text
  bool is_token = false;
  std::uint32_t token = 0;
};

struct PreTokenized {
  AlignedText text;
  std::vector<Split> splits;
  bool bytes = false;  // byte-level characters still are the bytes that they stand for
};

// The last step may leave bytes as they are where `keep_bytes` is set.
void pre_tokenize(const std::vector<PreTokenizerStep>& steps, bool keep_bytes, PreTokenized& text);

}  // namespace sdx::text
