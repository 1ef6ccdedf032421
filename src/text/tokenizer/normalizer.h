#pragma once
// Normalisation of text before it is split: steps in order, each one kind with its settings.

#include <memory>
#include <string>
#include <vector>

#include "text/tokenizer/aligned.h"
#include "text/tokenizer/charsmap.h"
#include "text/tokenizer/pattern.h"

namespace sdx::text {

struct NormalizerStep {
  enum class Kind {
    bert,
    strip,
    strip_accents,
    nfc,
    nfd,
    nfkc,
    nfkd,
    lowercase,
    nmt,
    precompiled,
    replace,
    prepend,
    byte_level,
    sentencepiece
  };
  Kind kind = Kind::nfc;
  bool clean_text = true, chinese_chars = true, accents = true, lowercase = true;  // bert; `accents`: strip them
  bool left = true, right = true;                                                  // strip
  Pattern pattern;                                                                 // replace
  std::string content;                                                             // replace, prepend
  std::shared_ptr<const Charsmap> charsmap;                                        // precompiled, sentencepiece
  std::shared_ptr<const struct SentencePieceRules> rules;                          // sentencepiece
};

void normalize(const NormalizerStep& step, AlignedText& text);
inline void normalize(const std::vector<NormalizerStep>& steps, AlignedText& text) {
  for (const NormalizerStep& step : steps) normalize(step, text);
}

}  // namespace sdx::text
