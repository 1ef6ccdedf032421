#pragma once
// Tokens that are added to those of a text, or of a pair: steps in order.

#include <string>
#include <vector>

#include <sdx/tokenizer.hpp>

namespace sdx::text {

struct PostProcessorStep {
  enum class Kind { bert, roberta, byte_level, templated };
  struct Special {
    std::string token;
    std::uint32_t id = 0;
  };
  struct Piece {
    int sequence = -1;  // 0 or 1: a text; -1: special tokens
    std::vector<Special> specials;
    std::uint32_t type_id = 0;
  };
  Kind kind = Kind::bert;
  Special sep, cls;                                   // bert, roberta
  bool trim_offsets = true, add_prefix_space = true;  // roberta, byte_level
  std::vector<Piece> single, pair;                    // templated

  // The number of tokens that the step adds.
  std::size_t added(bool is_pair) const;
};

std::size_t added_tokens(const std::vector<PostProcessorStep>& steps, bool is_pair);
// One encoding from one or two.
Encoding post_process(const std::vector<PostProcessorStep>& steps, bool present, std::vector<Encoding> parts,
                      bool add_special_tokens);

}  // namespace sdx::text
