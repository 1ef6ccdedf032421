#include "cache/decision.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "base/log.h"
#include "base/system/mapped_file.h"
#include "cache/folder.h"

namespace sdx::cache {
namespace {

// One line, so that a file of lines can hold it.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  return text;
}

}  // namespace

std::optional<Decision> read_decision(const std::filesystem::path& file) {
  constexpr std::size_t kMostBytes = 1 << 20;
  std::error_code none;
  if (!std::filesystem::exists(file, none)) return std::nullopt;
  Decision m;
  try {
    std::istringstream in(read_file(file, kMostBytes));
    std::string line;
    if (!std::getline(in, line) || line != "sdx measured 1") return std::nullopt;
    while (std::getline(in, line)) {
      std::istringstream words(line);
      std::string key;
      words >> key;
      if (key == "candidate") {
        MeasuredProvider c;
        words >> c.provider >> c.median_ms >> c.compile_ms;
        std::getline(words >> std::ws, c.note);
        m.candidates.push_back(std::move(c));
        continue;
      }
      std::string rest;
      std::getline(words >> std::ws, rest);
      if (key == "chosen") m.chosen = rest;
      if (key == "inputs") m.inputs = rest;
      if (key == "when") m.when = rest;
    }
  } catch (const Error& e) {
    log::debug("a measured decision cannot be read: {}", e.what());
    return std::nullopt;
  }
  std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now(), none);  // used: `sdx cache ls` tells when
  for (MeasuredProvider& c : m.candidates) c.chosen = c.provider == m.chosen;
  return m;
}

void write_decision(const std::filesystem::path& file, const Decision& m) {
  make_cache_folder(file.parent_path());
  std::string text = fmt::format("sdx measured 1\nlabel {}\nchosen {}\ninputs {}\nwhen {}\nmachine {}\n",
                                 one_line(m.model.empty() ? m.chosen : m.model + ": " + m.chosen), m.chosen, one_line(m.inputs),
                                 m.when, one_line(m.machine));
  for (const MeasuredProvider& c : m.candidates) {
    text += fmt::format("candidate {} {:.6f} {:.3f} {}\n", c.provider, c.median_ms, c.compile_ms, one_line(c.note));
  }
  write_file_atomically(file, text, kCacheFileMode);
}

}  // namespace sdx::cache
