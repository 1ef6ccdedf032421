#include "graph/dim.h"

#include <algorithm>
#include <cctype>

#include "base/checked.h"

namespace sdx {
namespace {

// A polynomial that grew beyond this is treated as unknown: hostile files could make it explode.
constexpr std::size_t kMaxTerms = 16;
constexpr std::size_t kMaxName = 200;
// Marks around names from files that read like expressions ("min(4, n)", "n + 1"), so that such a symbol equals no expression.
// Stored, but not shown.
constexpr char kOpen = '\x01', kClose = '\x02';

std::string shown(std::string name) {
  std::erase_if(name, [](char c) { return c == kOpen || c == kClose; });
  return name;
}

// A name that cannot be taken for a part of an expression.
bool is_word(const std::string& name) {
  const auto letter = [](unsigned char c) { return std::isalpha(c) != 0 || c == '_' || c >= 0x80; };
  const auto part = [&](unsigned char c) { return letter(c) || std::isdigit(c) != 0 || c == '.' || c == '-' || c == ':'; };
  return letter(static_cast<unsigned char>(name[0])) && std::all_of(name.begin(), name.end(), part);
}

// The stored form of an expression: different expressions have different texts.
template <class Poly>
std::string spelt(const Poly& poly) {
  std::string out;
  std::string constant;
  for (const auto& [names, coefficient] : poly) {
    std::string term;
    const std::int64_t magnitude = coefficient < 0 ? -coefficient : coefficient;
    if (names.empty()) {
      constant = (coefficient < 0 ? " - " : " + ") + std::to_string(magnitude);
      continue;
    }
    if (magnitude != 1) term = std::to_string(magnitude) + "*";
    for (std::size_t i = 0; i < names.size(); ++i) term += (i == 0 ? "" : "*") + names[i];
    if (out.empty()) {
      out = (coefficient < 0 ? "-" : "") + term;
    } else {
      out += (coefficient < 0 ? " - " : " + ") + term;
    }
  }
  return out + constant;
}

}  // namespace

Dim Dim::symbol(const std::string& name) {
  if (name.empty() || name.size() > kMaxName || shown(name) != name) return {};
  return from(Poly{{{is_word(name) ? name : kOpen + name + kClose}, 1}});
}

Dim Dim::named(std::string name) { return name.size() > kMaxName ? Dim() : from({{{std::move(name)}, 1}}); }

std::string Dim::stored() const { return known_ ? std::to_string(value_) : spelt(*poly_); }

Dim Dim::from(Poly poly) {
  std::erase_if(poly, [](const auto& term) { return term.second == 0; });
  if (poly.empty()) return Dim(0);
  if (poly.size() == 1 && poly.begin()->first.empty()) return Dim(poly.begin()->second);
  if (poly.size() > kMaxTerms) return {};
  for (const auto& [names, coefficient] : poly) {
    if (names.size() > 8) return {};
  }
  Dim d;
  d.poly_ = std::make_shared<const Poly>(std::move(poly));
  return d;
}

Dim::Poly Dim::poly() const {
  if (poly_) return *poly_;
  return value_ == 0 ? Poly{} : Poly{{{}, value_}};
}

std::string Dim::symbol_name() const {
  if (!poly_ || poly_->size() != 1) return {};
  const auto& [names, coefficient] = *poly_->begin();
  return names.size() == 1 && coefficient == 1 ? shown(names[0]) : std::string();
}

std::string Dim::str() const {
  if (known_) return std::to_string(value_);
  if (!poly_) return "?";
  return shown(spelt(*poly_));
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.known_ || b.known_) return a.known_ && b.known_ && a.value_ == b.value_;
  if (!a.poly_ || !b.poly_) return false;
  return a.poly_ == b.poly_ || *a.poly_ == *b.poly_;
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_unknown() || b.is_unknown()) return {};
  if (a.known_ && b.known_) {
    const auto sum = checked_add(a.value_, b.value_);
    return sum ? Dim(*sum) : Dim();
  }
  Dim::Poly p = a.poly();
  for (const auto& [names, coefficient] : b.poly()) {
    const auto sum = checked_add(p[names], coefficient);
    if (!sum) return {};
    p[names] = *sum;
  }
  return Dim::from(std::move(p));
}

Dim operator-(const Dim& a, const Dim& b) { return a + b * Dim(-1); }

Dim operator*(const Dim& a, const Dim& b) {
  if ((a.known_ && a.value_ == 0) || (b.known_ && b.value_ == 0)) return Dim(0);
  if (a.is_unknown() || b.is_unknown()) return {};
  if (a.known_ && b.known_) {
    const auto product = checked_mul(a.value_, b.value_);
    return product ? Dim(*product) : Dim();
  }
  Dim::Poly p;
  for (const auto& [na, ca] : a.poly()) {
    for (const auto& [nb, cb] : b.poly()) {
      std::vector<std::string> names = na;
      names.insert(names.end(), nb.begin(), nb.end());
      std::sort(names.begin(), names.end());
      const auto product = checked_mul(ca, cb);
      const auto sum = product ? checked_add(p[names], *product) : std::nullopt;
      if (!sum) return {};
      p[names] = *sum;
    }
  }
  return Dim::from(std::move(p));
}

// Divides by a single term, when every term of *this is a multiple of it.
std::optional<Dim> Dim::divide_exactly(const Dim& by) const {
  if (*this == by) return Dim(1);
  const Poly divisor = by.poly();
  if (divisor.size() != 1) return std::nullopt;
  const auto& [names, coefficient] = *divisor.begin();
  Poly quotient;
  for (const auto& [n, c] : poly()) {
    if (c % coefficient != 0 || !std::includes(n.begin(), n.end(), names.begin(), names.end())) return std::nullopt;
    std::vector<std::string> rest;
    std::set_difference(n.begin(), n.end(), names.begin(), names.end(), std::back_inserter(rest));
    quotient[rest] = c / coefficient;
  }
  return from(std::move(quotient));
}

Dim floor_div(const Dim& a, const Dim& b) {
  if (a.is_unknown() || b.is_unknown() || (b.known_ && b.value_ == 0)) return {};
  if (a.known_ && b.known_) {
    if (b.value_ == -1) return a * b;
    return Dim(floor_div(a.value_, b.value_));
  }
  if (a.known_ && a.value_ == 0) return Dim(0);
  if (auto exact = a.divide_exactly(b)) return *exact;
  return Dim::named("floor((" + a.stored() + ")/(" + b.stored() + "))");
}

Dim ceil_div(const Dim& a, const Dim& b) { return Dim(0) - floor_div(Dim(0) - a, b); }

Dim Dim::extreme(const std::string& function, const Dim& a, const Dim& b) {
  if (a == b) return a;
  if (a.known_ && b.known_) return Dim(function == "min" ? std::min(a.value_, b.value_) : std::max(a.value_, b.value_));
  if (a.is_unknown() || b.is_unknown()) return {};
  const std::string x = a.stored(), y = b.stored();
  return named(function + "(" + std::min(x, y) + ", " + std::max(x, y) + ")");  // whichever comes first
}

Dim min(const Dim& a, const Dim& b) { return Dim::extreme("min", a, b); }
Dim max(const Dim& a, const Dim& b) { return Dim::extreme("max", a, b); }

std::string to_string(const SymShape& shape) {
  std::string out = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) out += ',';
    out += shape[i].str();
  }
  return out + "]";
}

bool all_const(const SymShape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_const(); });
}

std::vector<std::int64_t> to_shape(const SymShape& shape) {
  std::vector<std::int64_t> out;
  out.reserve(shape.size());
  for (const Dim& d : shape) out.push_back(d.value());
  return out;
}

SymShape to_sym(const std::vector<std::int64_t>& shape) { return {shape.begin(), shape.end()}; }

}  // namespace sdx
