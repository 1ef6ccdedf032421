// Splits a stream into frames. A JPEG's end is found by its markers (ITU-T T.81, annex B), not by searching for FF D9, since a
// thumbnail inside it ends that way, too.

#include <algorithm>
#include <istream>
#include <utility>

#include "base/error.h"
#include "media/byte_reader.h"
#include "media/codecs.h"

namespace sdx::media {

struct FrameReader::Impl {
  std::istream& in;
  FrameLimits limits;
  std::string buffer;  // what has been read and not given out
  std::int64_t frames = 0, damaged = 0;
  std::string last_error;

  enum class End { whole, cut, broken };  // cut: another frame begins inside

  // False: the stream ends before.
  bool has(std::size_t size) {
    constexpr std::streamsize kPiece = 1 << 16;
    while (buffer.size() < size) {
      // Waits for one byte only and takes all others that are there, so that a camera's frame is returned as soon as it is
      // complete.
      const int first = in.get();
      if (first == std::char_traits<char>::eof()) {
        if (in.bad()) fail(ErrorCode::io, "reading the stream of pictures failed");
        return false;
      }
      buffer += static_cast<char>(first);
      char piece[kPiece];
      const std::streamsize more = in.readsome(piece, kPiece);
      if (more > 0) buffer.append(piece, static_cast<std::size_t>(more));
    }
    return true;
  }
  unsigned at(std::size_t i) const { return static_cast<unsigned char>(buffer[i]); }
  void drop(std::size_t size) { buffer.erase(0, std::min(size, buffer.size())); }

  void blame(std::string why) {
    ++damaged;
    last_error = std::move(why);
  }

  // Moves to the next start of a JPEG. False: there is none. `most`: bytes that may precede it.
  bool find_jpeg(std::size_t from, std::size_t most) {
    drop(from);
    for (std::size_t skipped = 0; skipped <= most;) {
      if (!has(3)) return false;
      std::size_t found = buffer.find("\xFF\xD8\xFF");
      if (found == std::string::npos) found = buffer.size() - 2;
      drop(found);
      if (buffer.starts_with("\xFF\xD8\xFF")) return true;
      skipped += found;
    }
    fail(ErrorCode::invalid_argument, "no JPEG begins in {} bytes of the stream", most);
  }

  // Finds the end of the JPEG that starts at 0.
  End jpeg_end(std::size_t& end) {
    bool scan = false;  // inside of compressed data
    for (end = 2; end < limits.bytes;) {
      if (!has(end + 2)) return End::broken;
      if (scan && at(end) != 0xFF) {
        const std::size_t next = buffer.find('\xFF', end);
        end = next == std::string::npos ? buffer.size() - 1 + (buffer.back() == '\xFF' ? 0 : 1) : next;
        continue;
      }
      const unsigned marker = at(end + 1);
      if (at(end) != 0xFF) return End::broken;
      if (marker == 0xFF) {  // padding
        ++end;
      } else if (marker == 0xD9) {
        end += 2;
        return End::whole;
      } else if (marker == 0xD8) {
        return End::cut;
      } else if (marker == 0 || (marker >= 0xD0 && marker <= 0xD7) || marker == 1) {
        if (!scan && marker == 0) return End::broken;
        end += 2;
      } else {
        if (!has(end + 4)) return End::broken;
        const std::size_t length = at(end + 2) << 8 | at(end + 3);
        if (length < 2) return End::broken;
        end += 2 + length;
        scan = marker == 0xDA;
      }
    }
    return End::broken;
  }

  std::optional<Image> next_jpeg() {
    constexpr std::size_t kGap = std::size_t{1} << 20;
    std::size_t from = 0;
    while (find_jpeg(from, std::max(limits.bytes, kGap))) {
      std::size_t end = 0;
      const End how = jpeg_end(end);
      if (how != End::whole) {
        const bool large = end >= limits.bytes;
        blame(large ? fmt::format("a frame has more than {} bytes", limits.bytes)
                    : "a frame is cut short or its markers are damaged");
        from = how == End::cut ? end : 2;
        continue;
      }
      try {
        Image image = decode_image(std::as_bytes(std::span<const char>(buffer.data(), end)), limits.decode);
        drop(end);
        ++frames;
        return image;
      } catch (const Error& e) {
        blame(e.message());
        from = end;
      }
    }
    return std::nullopt;
  }

  // The header as soon as it is whole.
  PnmHeader pnm_header() {
    constexpr std::size_t kMost = 4096;  // of a header, comments included
    for (std::size_t size = 8;; size = buffer.size() + 1) {
      const bool more = has(size);
      try {
        const PnmHeader h = read_pnm_header(std::as_bytes(std::span<const char>(buffer)));
        if (h.data <= buffer.size()) return h;
      } catch (const Error&) {
        if (!more || buffer.size() > kMost) throw;
      }
      if (!more) fail(ErrorCode::invalid_argument, "the stream ends inside a PNM header");
    }
  }

  std::optional<Image> next_pnm() {
    const PnmHeader h = pnm_header();
    if (h.kind <= 3)
      fail(ErrorCode::invalid_argument, "a stream of PNM pictures must be binary (P4 to P7), received P{}", h.kind);
    check_size(h.width, h.height, limits.decode);
    const std::size_t size = static_cast<std::size_t>(h.data + h.bytes);
    if (size > limits.bytes) fail(ErrorCode::out_of_memory, "a frame has {} bytes, the limit is {}", size, limits.bytes);
    if (!has(size)) {
      blame("the last frame is cut short");
      buffer.clear();
      return std::nullopt;
    }
    Image image = decode_image(std::as_bytes(std::span<const char>(buffer.data(), size)), limits.decode);
    drop(size);
    ++frames;
    return image;
  }
};

FrameReader::FrameReader(std::istream& in, const FrameLimits& limits)
    : impl_(std::make_unique<Impl>(Impl{in, limits, {}, 0, 0, {}})) {}
FrameReader::FrameReader(FrameReader&&) noexcept = default;
FrameReader& FrameReader::operator=(FrameReader&&) noexcept = default;
FrameReader::~FrameReader() = default;

std::optional<Image> FrameReader::next() {
  Impl& r = *impl_;
  while (r.has(1) && r.frames + r.damaged > 0 && (r.buffer[0] == '\n' || r.buffer[0] == '\r')) r.drop(1);
  if (!r.has(2)) {
    if (!r.buffer.empty()) r.blame("the stream ends inside a frame");
    r.buffer.clear();
    return std::nullopt;
  }
  if (r.buffer[0] == 'P' && r.buffer[1] >= '1' && r.buffer[1] <= '7') return r.next_pnm();
  if (r.frames + r.damaged > 0 || r.at(0) == 0xFF || r.buffer.starts_with("--")) return r.next_jpeg();
  fail(ErrorCode::invalid_argument, "the stream begins with bytes {:02X} {:02X}: neither a JPEG (FF D8) nor a PNM (P4 to P7)",
       r.at(0), r.at(1));
}

std::int64_t FrameReader::frames() const { return impl_->frames; }
std::int64_t FrameReader::damaged() const { return impl_->damaged; }
const std::string& FrameReader::last_error() const { return impl_->last_error; }

}  // namespace sdx::media
