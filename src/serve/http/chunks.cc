#include "serve/http/chunks.h"

#include <algorithm>
#include <charconv>

namespace sdx::serve {
namespace {

constexpr std::uint64_t kTrailerBytes = 8 * 1024;

bool is_text(std::string_view line) {
  return std::all_of(line.begin(), line.end(), [](unsigned char c) { return (c >= 0x20 || c == '\t') && c != 0x7f; });
}

}  // namespace

Chunks::State Chunks::take(std::string_view& input, std::string& body, std::uint64_t limit) {
  while (true) {
    if (state_ == State::data) {
      const std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(left_, input.size()));
      body.append(input.substr(0, n));
      input.remove_prefix(n);
      left_ -= n;
      if (left_ > 0) return state_;
      state_ = State::data_end;
    } else if (state_ == State::data_end) {
      constexpr std::string_view end = "\r\n";
      if (!end.starts_with(input.substr(0, 2))) return state_ = State::broken;
      if (input.size() < 2) return state_;
      input.remove_prefix(2);
      state_ = State::size;
    } else if (state_ == State::size || state_ == State::trailer) {
      const std::size_t end = input.find('\n');
      if (end == std::string_view::npos) return state_;
      if (end == 0 || input[end - 1] != '\r') return state_ = State::broken;
      const std::string_view line = input.substr(0, end - 1);
      input.remove_prefix(end + 1);
      state_ = take_line(line, limit - std::min<std::uint64_t>(limit, body.size()));
    } else {
      return state_;
    }
  }
}

Chunks::State Chunks::take_line(std::string_view line, std::uint64_t room) {
  if (!is_text(line)) return State::broken;
  if (state_ == State::trailer) {
    if (line.empty()) return State::done;
    trailer_bytes_ += line.size();
    const bool field = line.front() != ' ' && line.front() != '\t' && line.find(':') != std::string_view::npos;
    return field && trailer_bytes_ <= kTrailerBytes ? State::trailer : State::broken;
  }
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), left_, 16);
  const std::string_view rest = line.substr(static_cast<std::size_t>(end - line.data()));
  if (line.starts_with('-') || error != std::errc() || (!rest.empty() && rest.front() != ';')) return State::broken;
  if (left_ > room) return State::too_large;
  return left_ == 0 ? State::trailer : State::data;
}

}  // namespace sdx::serve
