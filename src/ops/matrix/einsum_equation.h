#pragma once
// The equation of Einsum. Source: ONNX Einsum-12, -28; numpy.einsum.

#include <string>
#include <vector>

namespace sdx::ops {

// A letter's character code; axes of the ellipsis are kEllipsisAxis + position counted from the last one, so that they align
// at the right. In a parsed term the ellipsis itself is kEllipsis.
using Label = int;
inline constexpr Label kEllipsis = -1;
inline constexpr Label kEllipsisAxis = 256;

struct EinsumEquation {
  std::vector<std::vector<Label>> inputs;
  std::vector<Label> output;
  bool is_explicit = false;
};

// Throws Error(invalid_model). In implicit form the output is the ellipsis followed by the letters that occur once, sorted.
EinsumEquation parse_einsum(std::string_view text);

// The term for a tensor of this rank, ellipsis spelled out. Throws Error(invalid_model) when the rank does not fit.
std::vector<Label> expand_term(const std::vector<Label>& term, std::size_t rank);
// The output's labels, for an ellipsis of `width` axes.
std::vector<Label> expand_output(const std::vector<Label>& term, std::size_t width);
// Axes that the ellipsis of the term stands for; 0 without ellipsis.
std::size_t ellipsis_width(const std::vector<Label>& term, std::size_t rank);

// "i", or "... axis 2": for messages.
std::string label_text(Label label);

}  // namespace sdx::ops
