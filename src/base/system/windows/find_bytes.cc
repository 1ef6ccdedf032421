#include "base/system/files/find_bytes.h"

#include <vector>

namespace sdx {

// The system has no such search: that of Knuth, Morris and Pratt. `back[n]`: how many bytes of the part still fit where its first
// n did and the next one does not.
std::size_t find_bytes(std::string_view text, std::string_view part) {
  std::size_t at = text.find(part.front());
  if (at == std::string_view::npos || part.size() == 1) return at;
  std::vector<std::size_t> back(part.size() + 1, 0);
  for (std::size_t n = 1, fit = 0; n < part.size(); ++n) {
    while (fit > 0 && part[n] != part[fit]) fit = back[fit];
    if (part[n] == part[fit]) ++fit;
    back[n + 1] = fit;
  }
  for (std::size_t fit = 0; at < text.size(); ++at) {
    while (fit > 0 && text[at] != part[fit]) fit = back[fit];
    if (text[at] == part[fit]) ++fit;
    if (fit == part.size()) return at + 1 - fit;
  }
  return std::string_view::npos;
}

}  // namespace sdx
