#include "ops/matrix/einsum_equation.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include "base/error.h"

namespace sdx::ops {
namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  fail(ErrorCode::invalid_model, "equation '{}': {}", text.substr(0, 200), why);
}

std::vector<Label> parse_term(std::string_view text, std::string_view term) {
  std::vector<Label> labels;
  bool ellipsis = false;
  for (std::size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      labels.push_back(c);
    } else if (term.substr(i, 3) == "..." && !ellipsis) {
      labels.push_back(kEllipsis);
      ellipsis = true;
      i += 2;
    } else {
      refuse(text, fmt::format("unexpected '{}'; permitted: letters, one '...' a term, ',' and '->'", c));
    }
  }
  return labels;
}

std::vector<Label> implicit_output(const std::vector<std::vector<Label>>& inputs) {
  std::array<int, 128> uses{};
  bool ellipsis = false;
  for (const auto& term : inputs) {
    for (const Label l : term) {
      if (l == kEllipsis) ellipsis = true;
      if (l != kEllipsis) ++uses[static_cast<std::size_t>(l)];
    }
  }
  std::vector<Label> out;
  if (ellipsis) out.push_back(kEllipsis);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (uses[i] == 1) out.push_back(static_cast<Label>(i));
  }
  return out;
}

void check_output(std::string_view text, const EinsumEquation& e) {
  for (std::size_t i = 0; i < e.output.size(); ++i) {
    const Label l = e.output[i];
    if (std::count(e.output.begin(), e.output.end(), l) > 1) refuse(text, "'" + label_text(l) + "' occurs twice in the output");
    const bool known = std::any_of(e.inputs.begin(), e.inputs.end(),
                                   [l](const auto& term) { return std::find(term.begin(), term.end(), l) != term.end(); });
    if (!known && l != kEllipsis) refuse(text, "'" + label_text(l) + "' of the output is in no input");
  }
}

}  // namespace

EinsumEquation parse_einsum(std::string_view text) {
  std::string s;
  std::copy_if(text.begin(), text.end(), std::back_inserter(s), [](char c) { return c != ' '; });
  EinsumEquation e;
  std::string_view left = s;
  if (const std::size_t arrow = s.find("->"); arrow != std::string::npos) {
    e.is_explicit = true;
    e.output = parse_term(text, left.substr(arrow + 2));
    left = left.substr(0, arrow);
  }
  for (std::size_t begin = 0; begin <= left.size();) {
    const std::size_t comma = std::min(left.find(',', begin), left.size());
    e.inputs.push_back(parse_term(text, left.substr(begin, comma - begin)));
    begin = comma + 1;
  }
  if (!e.is_explicit) e.output = implicit_output(e.inputs);
  check_output(text, e);
  return e;
}

std::size_t ellipsis_width(const std::vector<Label>& term, std::size_t rank) {
  const bool has = std::find(term.begin(), term.end(), kEllipsis) != term.end();
  const std::size_t letters = term.size() - (has ? 1 : 0);
  if (has ? rank < letters : rank != letters) {
    fail(ErrorCode::invalid_model, "a term names {}{} axes but its input has rank {}", has ? "at least " : "", letters, rank);
  }
  return rank - letters;
}

std::vector<Label> expand_output(const std::vector<Label>& term, std::size_t width) {
  std::vector<Label> out;
  for (const Label l : term) {
    if (l != kEllipsis) {
      out.push_back(l);
      continue;
    }
    for (std::size_t i = width; i-- > 0;) out.push_back(kEllipsisAxis + static_cast<Label>(i));
  }
  return out;
}

std::vector<Label> expand_term(const std::vector<Label>& term, std::size_t rank) {
  return expand_output(term, ellipsis_width(term, rank));
}

std::string label_text(Label label) {
  if (label == kEllipsis) return "...";
  if (label >= kEllipsisAxis) return fmt::format("... (axis {} from the right)", label - kEllipsisAxis);
  return {static_cast<char>(label)};
}

}  // namespace sdx::ops
