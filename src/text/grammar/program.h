#pragma once
// A grammar as states over bytes, with calls of rules, in the form that a Matcher runs.

#include <cstdint>
#include <vector>

#include "text/grammar/expressions.h"

namespace sdx::text::grammar {

struct State {
  enum class Kind : std::uint8_t { bytes, split, call, end } kind = Kind::end;
  std::uint8_t first = 0, last = 0;  // bytes: which lead to `next`
  std::uint32_t next = 0;            // bytes, call: what follows; split: one way
  std::uint32_t other = 0;           // split: the other way; call: where the rule begins
};

struct Program {
  std::vector<State> states;
  std::uint32_t start = 0;
};

// Throws Error(invalid_argument) for rules that begin with themselves (left recursion), a grammar that no text fits, and one that
// is too large.
Program compile(const Expressions& grammar, Rule root);

}  // namespace sdx::text::grammar
