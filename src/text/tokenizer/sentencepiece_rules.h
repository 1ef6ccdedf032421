#pragma once
// SentencePiece's preparation of text, as its models state it (NormalizerSpec, TrainerSpec).

#include "text/tokenizer/aligned.h"
#include "text/tokenizer/charsmap.h"
#include "text/tokenizer/model/trie.h"

namespace sdx::text {

struct SentencePieceRules {
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  bool whitespace_as_suffix = false;
  std::vector<std::string> user_symbols;  // stay as they are
  Trie symbols;                           // of these
};

// `charsmap` may be null.
void normalize_sentencepiece(const SentencePieceRules& rules, const Charsmap* charsmap, AlignedText& text);

}  // namespace sdx::text
