#pragma once
// Bodies in chunks (RFC 9112, section 7.1).

#include <cstdint>
#include <string>
#include <string_view>

namespace sdx::serve {

// Strict where programs differ: lines end with CR LF, sizes are hexadecimal digits alone, nothing stands between a chunk and its
// line's end. Extensions and trailers are skipped.
class Chunks {
 public:
  enum class State { size, data, data_end, trailer, done, broken, too_large };

  // Consumes the front of `input`, and appends the decoded part to `body`, which gets `limit` bytes at most. Incomplete lines
  // stay in `input`. done, broken and too_large are final; any other state needs more input.
  State take(std::string_view& input, std::string& body, std::uint64_t limit);

 private:
  State take_line(std::string_view line, std::uint64_t room);

  State state_ = State::size;
  std::uint64_t left_ = 0;  // of the chunk
  std::uint64_t trailer_bytes_ = 0;
};

}  // namespace sdx::serve
