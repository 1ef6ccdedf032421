#include "base/suggest.h"

#include <algorithm>

#include "base/text/ascii.h"

namespace sdx {
namespace {

// Edit distance in which swapping two neighbours, the commonest slip, counts once ("cdua" is nearer to "cuda" than to "cpu").
std::size_t distance(std::string_view a, std::string_view b) {
  const auto same = [](char x, char y) { return ascii_lower(x) == ascii_lower(y); };
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string closest(std::string_view text, std::span<const std::string> candidates) {
  std::string best;
  // Two of three letters are another word.
  std::size_t best_distance = (text.size() < 4 ? 1 : std::max<std::size_t>(2, text.size() / 3)) + 1;
  if (text.size() > 256) return best;
  for (const std::string& c : candidates) {
    if (c.size() > 256) continue;
    const std::size_t d = distance(text, c);
    if (d < best_distance && d < std::max(text.size(), c.size())) {
      best_distance = d;
      best = c;
    }
  }
  return best;
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    if (end > at) out.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string out;
  for (const std::string& p : parts) {
    if (!out.empty()) out += separator;
    out += p;
  }
  return out;
}

}  // namespace sdx
