#include "serve/http/content_encoding.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/text/ascii.h"
#include "serve/http/body_share.h"
#include "serve/http/text.h"

namespace sdx::serve {
namespace {

constexpr std::size_t kFirstBytes = 64 * 1024;
constexpr const char* kTaken = "gzip, deflate";

// The message of a refusal, and its status.
struct Refusal {
  int status;
  std::string message;
};

bool has_zlib_head(std::string_view body) {
  if (body.size() < 2) return false;
  const auto first = static_cast<unsigned char>(body[0]), second = static_cast<unsigned char>(body[1]);
  return first % 16 == Z_DEFLATED && (first * 256 + second) % 31 == 0;
}

class Inflater {
 public:
  explicit Inflater(int window_bits) {
    if (inflateInit2(&stream_, window_bits) != Z_OK) fail(ErrorCode::out_of_memory, "zlib has no memory");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Takes from the front of `in`, fills the front of `out`.
  int step(std::string_view& in, char*& out, std::size_t& room) {
    constexpr std::size_t most = std::numeric_limits<uInt>::max();
    const auto given = static_cast<uInt>(std::min(in.size(), most)), free = static_cast<uInt>(std::min(room, most));
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));  // zlib only reads it
    stream_.avail_in = given;
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = free;
    const int status = inflate(&stream_, Z_NO_FLUSH);
    in.remove_prefix(given - stream_.avail_in);
    const std::size_t made = free - stream_.avail_out;
    out += made;
    room -= made;
    return status;
  }
  void start_again() { inflateReset(&stream_); }

 private:
  z_stream stream_{};
};

std::optional<Refusal> unpack(std::string_view in, bool gzip, std::uint64_t most, BodyShare* share, std::string& out) {
  constexpr int with_gzip_head = 16;
  Inflater inflater(gzip ? MAX_WBITS + with_gzip_head : has_zlib_head(in) ? MAX_WBITS : -MAX_WBITS);  // some send "deflate" bare
  const std::size_t packed = in.size();
  std::size_t used = 0;
  while (true) {
    if (used == out.size()) {
      // One byte more than allowed tells a body that is too large from one that just fits.
      const std::uint64_t size = std::min<std::uint64_t>(most + 1, std::max<std::uint64_t>(kFirstBytes, 2 * used));
      if (used == size) return Refusal{413, fmt::format("the decompressed body of the request has more than {} bytes", most)};
      if (share != nullptr && !share->grow(packed + size)) {
        return Refusal{503, "the server is busy: its limit for request bodies is reached; try again later"};
      }
      out.resize(static_cast<std::size_t>(size));
    }
    char* at = out.data() + used;
    std::size_t room = out.size() - used;
    const std::size_t left = in.size();
    const int status = inflater.step(in, at, room);
    const bool stuck = room == out.size() - used && in.size() == left;
    used = out.size() - room;
    if (status == Z_STREAM_END) {
      if (in.empty()) break;
      if (!gzip) return Refusal{400, "there are extra bytes after the compressed body"};
      inflater.start_again();  // gzip data may be several, one behind the other
    } else if (status != Z_OK && (status != Z_BUF_ERROR || stuck)) {
      return Refusal{400, fmt::format("the request's body is incomplete, or not {} data", gzip ? "gzip" : "deflate")};
    }
  }
  if (used > most) return Refusal{413, fmt::format("the decompressed body of the request has more than {} bytes", most)};
  out.resize(used);
  return std::nullopt;
}

}  // namespace

bool is_encoded(const Request& request) {
  if (request.body.empty()) return false;
  return std::any_of(request.headers.begin(), request.headers.end(), [](const auto& field) {
    return same_word(field.first, "content-encoding") && !same_word(trimmed(field.second), "identity") &&
           !trimmed(field.second).empty();
  });
}

std::optional<Response> decode_body(Request& request, std::uint64_t most, ErrorShape shape) {
  const auto fields = std::count_if(request.headers.begin(), request.headers.end(),
                                    [](const auto& field) { return same_word(field.first, "content-encoding"); });
  const std::string_view encoding = trimmed(request.header("content-encoding"));
  const bool gzip = same_word(encoding, "gzip") || same_word(encoding, "x-gzip");
  if (fields != 1 || (!gzip && !same_word(encoding, "deflate"))) {
    Response response = shape(415, fmt::format("Content-Encoding '{}' is not supported: send gzip, deflate or the body as it is",
                                               fields > 1 ? "… more than once" : encoding));
    response.headers.emplace_back("Accept-Encoding", kTaken);
    return response;
  }
  std::string out;
  if (const auto refusal = unpack(request.body, gzip, most, request.body_held.get(), out)) {
    Response response = shape(refusal->status, refusal->message);
    if (refusal->status == 503) response.headers.emplace_back("Retry-After", "1");
    return response;
  }
  request.body = std::move(out);
  return std::nullopt;
}

}  // namespace sdx::serve
