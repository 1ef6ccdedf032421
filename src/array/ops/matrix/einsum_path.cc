#include "array/ops/matrix/einsum_path.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>

#include "array/ops/common.h"

namespace sdx::array::detail {
namespace {

constexpr int kLetters = 52;

int label_of(char c) { return c >= 'a' ? c - 'a' : 26 + (c - 'A'); }

// Parses the subscripts of one operand; -1 stands for the ellipsis.
Labels parsed(const std::string& text) {
  Labels out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (std::isalpha(static_cast<unsigned char>(text[i])) != 0) {
      out.push_back(label_of(text[i]));
    } else if (text.compare(i, 3, "...") == 0 && std::find(out.begin(), out.end(), -1) == out.end()) {
      out.push_back(-1);
      i += 2;
    } else {
      refuse("einsum", "subscripts '{}': '{}' is neither a letter nor an ellipsis", text, text[i]);
    }
  }
  return out;
}

std::vector<std::string> split_at(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at) {
      parts.emplace_back();
    } else {
      parts.back().push_back(c);
    }
  }
  return parts;
}

// Replaces the ellipsis by as many labels as it stands for: the last `count` of `most`.
Labels expanded(const Labels& labels, int count, int most) {
  Labels out;
  for (const int label : labels) {
    if (label >= 0) out.push_back(label);
    for (int i = 0; label < 0 && i < count; ++i) out.push_back(kLetters + most - count + i);
  }
  return out;
}

void note_extents(EinsumTerms& terms, const Labels& labels, const Shape& shape, const std::string& subscripts) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    std::int64_t& extent = terms.extents[static_cast<std::size_t>(labels[i])];
    const std::int64_t own = shape[i];
    if (extent != -1 && extent != 1 && own != 1 && extent != own) {
      refuse("einsum", "'{}': one subscript stands for {} and for {} elements", subscripts, extent, own);
    }
    if (extent == -1 || extent == 1) extent = own;
  }
}

bool has(const Labels& labels, int label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

// Returns the result's labels if there is no arrow: the ellipsis, then all labels that occur once, sorted.
Labels implied_result(const std::vector<Labels>& operands) {
  std::map<int, int> counts;
  bool dots = false;
  for (const Labels& labels : operands) {
    for (const int label : labels) ++counts[label];
    dots = dots || has(labels, -1);
  }
  // Capitals before small letters, as in NumPy.
  Labels out;
  for (const auto& [label, count] : counts) {
    if (label >= 0 && count == 1) out.push_back(label);
  }
  std::stable_sort(out.begin(), out.end(), [](int a, int b) { return (a + 26) % kLetters < (b + 26) % kLetters; });
  if (dots) out.insert(out.begin(), -1);
  return out;
}

double extent_of(const EinsumTerms& terms, const Labels& labels) {
  double count = 1;
  for (const int label : labels) count *= static_cast<double>(terms.extents[static_cast<std::size_t>(label)]);
  return count;
}

struct Search {
  const EinsumTerms& terms;
  double best = std::numeric_limits<double>::infinity();
  EinsumPath best_path, path;

  void go(const std::vector<Labels>& left, double cost) {
    if (cost >= best) return;
    if (left.size() == 1) {
      best = cost;
      best_path = path;
      return;
    }
    for (std::size_t i = 0; i < left.size(); ++i) {
      for (std::size_t j = i + 1; j < left.size(); ++j) {
        std::vector<Labels> others = left;
        others.erase(others.begin() + static_cast<std::ptrdiff_t>(j));
        others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
        const double more = einsum_cost(terms, left[i], left[j]);
        others.push_back(einsum_left(left[i], left[j], others, terms.result));
        path.push_back({static_cast<int>(i), static_cast<int>(j)});
        go(others, cost + more);
        path.pop_back();
      }
    }
  }
};

EinsumPath greedy(const EinsumTerms& terms) {
  std::vector<Labels> left = terms.operands;
  EinsumPath path;
  while (left.size() > 1) {
    double least = std::numeric_limits<double>::infinity();
    std::vector<int> pick{0, 1};
    for (std::size_t i = 0; i < left.size(); ++i) {
      for (std::size_t j = i + 1; j < left.size(); ++j) {
        const double cost = einsum_cost(terms, left[i], left[j]);
        if (cost < least) least = cost, pick = {static_cast<int>(i), static_cast<int>(j)};
      }
    }
    const Labels a = left[static_cast<std::size_t>(pick[0])], b = left[static_cast<std::size_t>(pick[1])];
    left.erase(left.begin() + pick[1]);
    left.erase(left.begin() + pick[0]);
    left.push_back(einsum_left(a, b, left, terms.result));
    path.push_back(pick);
  }
  return path;
}

}  // namespace

EinsumTerms einsum_terms(const std::string& subscripts, const std::vector<Shape>& shapes) {
  std::string text;
  std::copy_if(subscripts.begin(), subscripts.end(), std::back_inserter(text), [](char c) { return c != ' '; });
  const std::size_t arrow = text.find("->");
  const std::vector<std::string> inputs = split_at(text.substr(0, arrow), ',');
  if (inputs.size() != shapes.size()) {
    refuse("einsum", "'{}' has subscripts of {} operands, {} are given", subscripts, inputs.size(), shapes.size());
  }
  std::vector<Labels> raw;
  std::vector<int> dots;
  int most = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    raw.push_back(parsed(inputs[i]));
    const bool any = has(raw[i], -1);
    dots.push_back(static_cast<int>(shapes[i].size()) - static_cast<int>(raw[i].size()) + (any ? 1 : 0));
    if (dots[i] < 0 || (!any && dots[i] != 0)) {
      refuse("einsum", "'{}': '{}' for an array of shape {}", subscripts, inputs[i], to_string(shapes[i]));
    }
    most = std::max(most, dots[i]);
  }
  EinsumTerms terms;
  terms.extents.assign(static_cast<std::size_t>(kLetters) + static_cast<std::size_t>(most), -1);
  for (std::size_t i = 0; i < raw.size(); ++i) {
    terms.operands.push_back(expanded(raw[i], dots[i], most));
    note_extents(terms, terms.operands[i], shapes[i], subscripts);
  }
  const Labels result = arrow == std::string::npos ? implied_result(raw) : parsed(text.substr(arrow + 2));
  terms.result = expanded(result, most, most);
  for (std::size_t i = 0; i < terms.result.size(); ++i) {
    const int label = terms.result[i];
    if (terms.extents[static_cast<std::size_t>(label)] < 0 || std::count(terms.result.begin(), terms.result.end(), label) > 1) {
      refuse("einsum", "'{}': a subscript of the result occurs in no operand, or twice", subscripts);
    }
  }
  return terms;
}

Labels einsum_left(const Labels& a, const Labels& b, const std::vector<Labels>& others, const Labels& result) {
  Labels out;
  for (const Labels* labels : {&a, &b}) {
    for (const int label : *labels) {
      const bool needed =
          has(result, label) || std::any_of(others.begin(), others.end(), [&](const Labels& o) { return has(o, label); });
      if (needed && !has(out, label)) out.push_back(label);
    }
  }
  return out;
}

double einsum_cost(const EinsumTerms& terms, const Labels& a, const Labels& b) {
  Labels all = a;
  for (const int label : b) {
    if (!has(all, label)) all.push_back(label);
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return extent_of(terms, all);
}

EinsumPath einsum_order(const EinsumTerms& terms) {
  if (terms.operands.size() == 1) return {{0}};
  if (terms.operands.size() > 6) return greedy(terms);
  Search search{terms, std::numeric_limits<double>::infinity(), {}, {}};
  search.go(terms.operands, 0);
  return search.best_path.empty() ? greedy(terms) : search.best_path;
}

}  // namespace sdx::array::detail
