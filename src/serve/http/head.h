#pragma once
// Rules for a request's head beyond those of a lenient parser. A head that two programs could read in two ways (the end of the
// body, the host) is refused: between a proxy and a server, such requests smuggle others.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "serve/http/message.h"

namespace sdx::serve {

enum class HeadState { incomplete, complete, broken };
struct HeadEnd {
  HeadState state = HeadState::incomplete;
  std::size_t size = 0;  // with the empty line, when complete
};
// Finds the end of the head at the start of `data`. broken: a line that does not end with CR LF, or another byte that no head
// has. `from`: the number of bytes that an earlier call has seen.
HeadEnd find_head_end(std::string_view data, std::size_t from = 0);

struct HeadError {
  int status = 400;
  std::string message;
};
// Checks a whole head that find_head_end() found: request line, names of fields, folded lines, and the fields Host,
// Content-Length, Transfer-Encoding and Expect.
std::optional<HeadError> check_head(std::string_view head);

// The form of a request's body, and whether the connection continues after it.
struct Framing {
  bool old = false;  // HTTP/1.0
  bool keep_alive = false;
  std::optional<std::uint64_t> length;  // nothing: in chunks
};
// Fills method, target and headers from a head that check_head() has passed.
Framing read_head(std::string_view head, Request& request);

// Fills path and query from target. False unless the target is a path whose escapes are whole, without zero bytes and without
// parts that lead elsewhere.
bool split_target(Request& request);
// %XX, and '+' as a space where `plus` says so. Empty for escapes that are not whole.
std::optional<std::string> percent_decode(std::string_view text, bool plus);

}  // namespace sdx::serve
