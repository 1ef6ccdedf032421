#pragma once
// Extents and shape-like integers that may not be known yet.

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/tools_api.h"

namespace sdx {

// An integer: a constant, a polynomial over named symbols ("batch", "2*seq + 1"), or unknown. Used for extents (then it is
// never negative) and for elements of shape tensors (then it may be). Immutable, cheap to copy.
// Two symbolic Dims that compare equal are equal for every value of their symbols; unknown equals nothing.
class Dim {
 public:
  Dim() = default;                                          // unknown
  Dim(std::int64_t value) : known_(true), value_(value) {}  // NOLINT: implicit on purpose
  static Dim symbol(const std::string& name);
  static Dim unknown() { return {}; }

  bool is_const() const noexcept { return known_; }
  bool is_symbolic() const noexcept { return poly_ != nullptr; }
  bool is_unknown() const noexcept { return !known_ && poly_ == nullptr; }
  std::int64_t value() const noexcept { return value_; }  // of a constant
  // The name, if this is one plain symbol; "" otherwise.
  std::string symbol_name() const;

  // "3", "batch", "2*seq + 1", "?"
  std::string str() const;

  friend bool operator==(const Dim& a, const Dim& b);
  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  // Rounds towards minus infinity. Unknown for a zero or unknown divisor. Where the quotient is not a polynomial, the result
  // is a symbol named after the expression ("floor((h - 1)/2)"), so that equal expressions still compare equal.
  friend Dim floor_div(const Dim& a, const Dim& b);
  friend Dim ceil_div(const Dim& a, const Dim& b);
  friend Dim min(const Dim& a, const Dim& b);
  friend Dim max(const Dim& a, const Dim& b);

 private:
  // Sorted symbol names (with repetition) -> coefficient; no zero coefficients.
  using Poly = std::map<std::vector<std::string>, std::int64_t>;
  static Dim from(Poly poly);
  static Dim named(std::string name);
  static Dim extreme(const std::string& function, const Dim& a, const Dim& b);  // "min" or "max"
  Poly poly() const;
  std::string stored() const;  // as part of a name
  std::optional<Dim> divide_exactly(const Dim& by) const;

  bool known_ = false;
  std::int64_t value_ = 0;
  std::shared_ptr<const Poly> poly_;
};

using SymShape = std::vector<Dim>;

// "[batch,3,?]"
std::string to_string(const SymShape& shape);
SDX_TOOLS_API bool all_const(const SymShape& shape);
// Precondition: all_const(shape).
std::vector<std::int64_t> to_shape(const SymShape& shape);
SymShape to_sym(const std::vector<std::int64_t>& shape);

}  // namespace sdx
