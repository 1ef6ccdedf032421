#pragma once
// The expressions that GGUF files name by `tokenizer.ggml.pre`: each in turn splits the text into matches and the parts between.

#include <string>
#include <string_view>
#include <vector>

namespace sdx::text {

struct SplitExpressions {
  std::vector<std::string> expressions;
  bool ignore_merges = false;
  bool add_bos = false;  // unless the file says otherwise
};

// Throws Error(not_implemented) for a name that is not known.
const SplitExpressions& split_expressions(std::string_view name);

}  // namespace sdx::text
