#include "tensor/gguf/gguf_names.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/system/file.h"
#include "base/text/ascii.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kDigits = 5;
constexpr std::uint64_t kMostParts = 1000;

std::optional<std::uint64_t> five_digits(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.size() != kDigits || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool is_projector(const std::string& stem) {
  const std::string lower = ascii_lower(stem);
  return lower.find("mmproj") != std::string::npos;
}

}  // namespace

std::optional<GgufPart> gguf_part(const fs::path& file) {
  if (file.extension() != ".gguf") return std::nullopt;
  const std::string stem = file.stem().string();
  constexpr std::string_view of = "-of-";
  constexpr std::size_t tail = 1 + kDigits + of.size() + kDigits;
  if (stem.size() <= tail) return std::nullopt;
  const std::string_view end = std::string_view(stem).substr(stem.size() - tail);
  const auto number = five_digits(end.substr(1, kDigits)), count = five_digits(end.substr(tail - kDigits));
  if (end[0] != '-' || end.substr(1 + kDigits, of.size()) != of || !number || !count) return std::nullopt;
  if (*number < 1 || *number > *count) return std::nullopt;
  return GgufPart{stem.substr(0, stem.size() - tail), *number, *count};
}

std::vector<fs::path> gguf_parts(const fs::path& file) {
  const auto part = gguf_part(file);
  std::vector<fs::path> all{file};
  if (!part || part->number != 1) return all;
  for (std::uint64_t i = 2; i <= std::min(part->count, kMostParts); ++i) {
    all.push_back(file.parent_path() / path_of(fmt::format("{}-{:05}-of-{:05}.gguf", part->stem, i, part->count)));
  }
  return all;
}

std::string model_name_of(const fs::path& file) {
  const auto part = gguf_part(file);
  return part ? part->stem : file.stem().string();
}

bool is_whole_gguf(const fs::path& file) {
  if (file.extension() != ".gguf") return false;
  const auto part = gguf_part(file);
  return (!part || part->number == 1) && !is_projector(file.stem().string());
}

std::optional<fs::path> gguf_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    const fs::path& file = it->path();
    if (!file.filename().string().starts_with('.') && is_whole_gguf(file) && it->is_regular_file(ignored)) found.push_back(file);
  }
  if (found.empty()) return std::nullopt;
  if (found.size() == 1) return found.front();
  std::sort(found.begin(), found.end());
  fail(ErrorCode::invalid_argument, "'{}' has {} models ('{}', '{}'{}): name one of the files", folder.string(), found.size(),
       found[0].filename().string(), found[1].filename().string(), found.size() > 2 ? ", …" : "");
}

}  // namespace sdx
