#pragma once
// Einstein sums: what the subscripts say, and in what order operands are contracted.

#include <string>
#include <vector>

#include <sdx/tensor.hpp>

namespace sdx::array::detail {

// Labels are letters; axes of an ellipsis have labels of their own, beyond the letters.
using Labels = std::vector<int>;

struct EinsumTerms {
  std::vector<Labels> operands;
  Labels result;
  std::vector<std::int64_t> extents;  // by label; -1: not there. An axis of extent 1 may meet a longer one.
};
// Throws Error(invalid_argument).
EinsumTerms einsum_terms(const std::string& subscripts, const std::vector<Shape>& shapes);

// Which operands are contracted next: their numbers; they are removed and the result is appended.
using EinsumPath = std::vector<std::vector<int>>;
// The cheapest order for up to 6 operands, else the cheapest next pair each time.
EinsumPath einsum_order(const EinsumTerms& terms);

// Labels of what is left when these operands have been contracted: those of the others or of the result.
Labels einsum_left(const Labels& a, const Labels& b, const std::vector<Labels>& others, const Labels& result);
double einsum_cost(const EinsumTerms& terms, const Labels& a, const Labels& b);  // multiplications

}  // namespace sdx::array::detail
