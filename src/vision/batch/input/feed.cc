#include "vision/batch/input/feed.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <streambuf>
#include <utility>

#include "base/error.h"
#include "base/system/files/input.h"
#include "base/system/interrupt.h"

namespace sdx::vision::batch {
namespace {

class InterruptibleBuffer : public std::streambuf {
 public:
  explicit InterruptibleBuffer(int fd) : fd_(fd) {}

 protected:
  int_type underflow() override {
    while (!Interrupt::requested()) {
      const InputState state = wait_for_input(fd_, Interrupt::kLookMs);
      if (state == InputState::nothing) continue;
      const std::ptrdiff_t n = read_some(fd_, buffer_.data(), buffer_.size());
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (n < 0) broken();
      if (n == 0) break;
      setg(buffer_.data(), buffer_.data(), buffer_.data() + n);
      return traits_type::to_int_type(buffer_[0]);
    }
    return traits_type::eof();
  }

 private:
  // The stream above catches it and is bad afterwards, which its reader reports.
  [[noreturn]] static void broken() { fail(ErrorCode::io, "reading failed: {}", std::strerror(errno)); }

  int fd_;
  std::array<char, std::size_t{1} << 16> buffer_{};
};

class InterruptibleStream : public std::istream {
 public:
  explicit InterruptibleStream(int fd) : std::istream(nullptr), buffer_(fd) { rdbuf(&buffer_); }

 private:
  InterruptibleBuffer buffer_;
};

struct Frames {
  media::FrameReader reader;
  std::int64_t count = 0, damaged = 0;
  std::optional<media::Image> waiting;  // a good frame behind damaged ones

  Input input() {
    Input out;
    out.shown = fmt::format("-#{}", ++count);
    out.stem = fmt::format("frame_{:06}", count);
    return out;
  }

  std::optional<Next> next() {
    if (Interrupt::requested()) return std::nullopt;
    if (!waiting) waiting = reader.next();
    if (!waiting && Interrupt::requested()) return std::nullopt;  // the frame that was cut short is not damaged
    if (damaged < reader.damaged()) {
      ++damaged;
      Next broken{input(), std::nullopt};
      broken.input.error = "a damaged frame: " + reader.last_error();
      return broken;
    }
    if (!waiting) return std::nullopt;
    Next out{input(), std::move(waiting)};
    waiting.reset();
    return out;
  }
};

}  // namespace

Feed list_feed(std::vector<Input> inputs) {
  return
      [inputs = std::make_shared<std::vector<Input>>(std::move(inputs)), at = std::size_t{0}]() mutable -> std::optional<Next> {
        if (at >= inputs->size() || Interrupt::requested()) return std::nullopt;
        return Next{std::move((*inputs)[at++]), std::nullopt};
      };
}

Feed frame_feed(std::istream& in) {
  return [frames = std::make_shared<Frames>(Frames{media::FrameReader(in), 0, 0, std::nullopt})] { return frames->next(); };
}

std::unique_ptr<std::istream> interruptible_stream(int fd) { return std::make_unique<InterruptibleStream>(fd); }

}  // namespace sdx::vision::batch
