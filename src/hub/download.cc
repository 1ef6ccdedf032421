#include "hub/download.h"

#include <algorithm>
#include <charconv>
#include <thread>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "hub/part_file.h"

namespace sdx::hub {
namespace {

namespace fs = std::filesystem;

constexpr int kMostRedirects = 8;
constexpr std::size_t kTextLimit = std::size_t{32} << 20;
constexpr std::uint64_t kSpaceStep = std::uint64_t{64} << 20;

// A failure that another attempt may mend.
struct Passing {
  std::string why;
  std::chrono::milliseconds wait{0};  // the delay that the server asks for
};

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_redirect(int status) { return status == 301 || status == 302 || status == 303 || status == 307 || status == 308; }

std::chrono::milliseconds retry_after(const Response& r) {
  const auto seconds = number(r.header("Retry-After"));
  return std::chrono::seconds(std::min<std::uint64_t>(seconds.value_or(0), 60));
}

[[noreturn]] void refuse(const Url& url, const Response& r, const std::string& what) {
  switch (r.status) {
    case 401:
    case 403:
      fail(ErrorCode::io,
           "{}: the server refuses access to {} (status {}); a private or gated model needs a token: HF_TOKEN=… sdx pull", what,
           url.text(), r.status);
    case 404:
    case 410: fail(ErrorCode::io, "{}: the server has no {} (status {})", what, url.text(), r.status);
    default: fail(ErrorCode::io, "{}: the server answers {} with status {}", what, url.text(), r.status);
  }
}

// Requests `url`, following redirects. `accept` sees the final response and says whether the body is wanted.
// Throws Passing and Error.
struct Exchange {
  const NetworkOptions& options;
  std::string what;
  Headers headers;  // sent on every hop
  std::function<bool(const Response&)> accept;
  std::function<bool(const char*, std::size_t)> on_data;
  std::string linked_etag, linked_size;  // X-Linked-…: a hub describes the file before it redirects to a store

  bool run(Url url) {
    for (int hop = 0; hop <= kMostRedirects; ++hop) {
      Response last;
      bool wanted = false;
      Request request{url, headers, options.timeout, {}, on_data};
      if (!options.token.empty() && url.origin() == options.token_host) {
        request.headers.emplace_back("Authorization", "Bearer " + options.token);
      }
      request.on_response = [&](const Response& r) {
        last = r;
        if (linked_etag.empty()) linked_etag = r.header("X-Linked-Etag");
        if (linked_size.empty()) linked_size = r.header("X-Linked-Size");
        wanted = !is_redirect(r.status) && good(url, r) && accept(r);
        return wanted;
      };
      const Result result = http_get(request);
      if (last.status != 0 && is_redirect(last.status)) {
        url = resolve_location(url, last.header("Location"));
        continue;
      }
      if (last.status != 0 && !wanted) return false;
      if (result.outcome != Outcome::ok && result.outcome != Outcome::stopped) {
        if (result.outcome == Outcome::oversized) fail(ErrorCode::io, "{}: {}: {}", what, url.text(), result.error);
        throw Passing{fmt::format("{}: {}", url.text(), result.error)};
      }
      return result.outcome == Outcome::ok;
    }
    fail(ErrorCode::io, "{}: more than {} redirects, the last to {}", what, kMostRedirects, url.text());
  }

  bool good(const Url& url, const Response& r) const {
    if (r.status == 408 || r.status == 429 || r.status >= 500) {
      throw Passing{fmt::format("{}: status {}", url.text(), r.status), retry_after(r)};
    }
    if (r.status != 200 && r.status != 206 && r.status != 304 && r.status != 416) refuse(url, r, what);
    return true;
  }
};

// Runs `attempt` until it succeeds, waiting 0.5 s, 1 s, 2 s, … in between. `moved` says whether an attempt got anything: one that
// did starts the count anew, so that a large file over a bad line arrives in the end. `kept`: whether the next pull finds
// something.
template <class F, class Moved, class Kept>
auto with_retries(const NetworkOptions& options, const std::string& what, const F& attempt, const Moved& moved,
                  const Kept& kept) {
  for (int failures = 0;;) {
    try {
      return attempt();
    } catch (const Passing& p) {
      failures = moved() ? 1 : failures + 1;
      if (failures > options.retries) {
        fail(ErrorCode::io, "{}: {}; gave up after {}{}", what, p.why,
             failures == 1 ? "1 attempt" : fmt::format("{} attempts in a row", failures),
             kept() ? ". What came is kept: the same command continues" : "");
      }
      const auto wait = std::max(p.wait, std::chrono::milliseconds(500) * (1 << std::min(failures - 1, 5)));
      if (options.note) options.note(fmt::format("{}: {}; another attempt in {:.1f} s", what, p.why, wait.count() / 1000.0));
      std::this_thread::sleep_for(wait);
    }
  }
}

// "bytes 100-199/200" -> 100 and 200
std::optional<std::pair<std::uint64_t, std::uint64_t>> content_range(const std::string& text) {
  const auto dash = text.find('-'), slash = text.find('/');
  if (!text.starts_with("bytes ") || dash == std::string::npos || slash == std::string::npos) return std::nullopt;
  const auto first = number(std::string_view(text).substr(6, dash - 6)), total = number(std::string_view(text).substr(slash + 1));
  if (!first || !total) return std::nullopt;
  return std::pair(*first, *total);
}

class Download {
 public:
  Download(const RemoteFile& file, const fs::path& target, const NetworkOptions& options)
      : file_(file), target_(target), options_(options), part_(target, file.url.text()) {}

  Fetched run() {
    for (int round = 0;; ++round) {
      with_retries(
          options_, file_.name,
          [&] {
            attempt();
            return true;
          },
          [&] { return std::exchange(moved_, false); }, [&] { return part_.size() > 0; });
      if (result_.unchanged) {
        part_.discard();
        return result_;
      }
      const std::string wrong = mismatch();
      if (wrong.empty()) break;
      part_.discard();
      // Bytes that an earlier run left may be of another version in spite of the ETag: those deserve a second look, others do
      // not.
      if (round > 0 || !continued_) fail(ErrorCode::io, "{}: {} from {}", file_.name, wrong, file_.url.text());
      if (options_.note) options_.note(fmt::format("{}: {}; starting over", file_.name, wrong));
      part_.restart("");
    }
    part_.finish();
    result_.bytes = part_.size();
    return result_;
  }

 private:
  void attempt() {
    Exchange exchange{options_, file_.name, {{"Accept-Encoding", "identity"}, {"User-Agent", "sardonyx/" SDX_VERSION}}, {}, {},
                      {},       {}};
    if (part_.size() > 0 && !part_.etag().empty()) {
      exchange.headers.emplace_back("Range", fmt::format("bytes={}-", part_.size()));
      exchange.headers.emplace_back("If-Range", part_.etag());
    } else if (!file_.known_etag.empty()) {
      exchange.headers.emplace_back("If-None-Match", file_.known_etag);
    }
    exchange.accept = [&](const Response& r) { return accept(r, exchange); };
    exchange.on_data = [&](const char* data, std::size_t size) { return on_data(data, size); };
    total_.reset();
    exchange.run(file_.url);
    if (total_ && part_.size() < *total_) {
      throw Passing{fmt::format("{}: only {} of {} bytes came", file_.url.text(), part_.size(), *total_)};
    }
  }

  bool accept(const Response& r, const Exchange& exchange) {
    result_.etag = r.header("ETag");
    if (const std::string& linked = exchange.linked_etag; linked.size() == 66 && sha256_.empty()) sha256_ = linked.substr(1, 64);
    if (r.status == 304 && !file_.known_etag.empty()) {
      result_.unchanged = true;
      result_.etag = file_.known_etag;
      return false;
    }
    if (r.status == 304) fail(ErrorCode::io, "{}: {} answers 'not modified' to a first request", file_.name, file_.url.text());
    if (r.status == 416) {  // nothing after the present bytes: complete, or another version
      const std::string range = r.header("Content-Range");
      if (number(std::string_view(range).substr(std::min(range.size(), std::size_t{8}))) != part_.size()) part_.restart("");
      if (part_.size() == 0) throw Passing{file_.url.text() + ": the file has changed"};
      return false;
    }
    continued_ = r.status == 206;
    if (continued_) {
      const auto range = content_range(r.header("Content-Range"));
      if (!range || range->first != part_.size()) {
        part_.restart("");
        throw Passing{fmt::format("{}: another part came than was asked for", file_.url.text())};
      }
      total_ = range->second;
    } else {
      part_.restart(result_.etag);
      total_ = number(r.header("Content-Length"));
      if (!total_) total_ = file_.bytes;
    }
    check_size();
    return true;
  }

  void check_size() {
    next_check_ = part_.size() + kSpaceStep;
    if (total_) check_allowed(*total_, options_, file_.name);
    check_space(target_.parent_path(), total_ && *total_ > part_.size() ? *total_ - part_.size() : 0, file_.name);
  }

  bool on_data(const char* data, std::size_t size) {
    if (part_.size() + size > options_.max_bytes) {
      part_.discard();
      fail(ErrorCode::invalid_argument, "{}: more than the allowed {} bytes came (--max-size)", file_.name, options_.max_bytes);
    }
    if (total_ && part_.size() + size > *total_)
      fail(ErrorCode::io, "{}: more bytes came than the {} announced", file_.name, *total_);
    part_.append(data, size);
    result_.received += size;
    moved_ = moved_ || size > 0;
    if (part_.size() >= next_check_) check_size();
    if (options_.progress) options_.progress(part_.size(), total_.value_or(0));
    return true;
  }

  // Describes a mismatch of size or checksum, or "".
  std::string mismatch() {
    if (file_.bytes && part_.size() != *file_.bytes) {
      return fmt::format("received {} bytes, but the hub lists {}", part_.size(), *file_.bytes);
    }
    result_.sha256 = part_.sha256();
    for (const std::string& wanted : {file_.sha256, sha256_}) {
      if (!wanted.empty() && result_.sha256 != wanted) {
        return fmt::format("wrong checksum: sha256 {} came, {} was expected", result_.sha256, wanted);
      }
    }
    if (!file_.git_sha1.empty() && part_.git_sha1() != file_.git_sha1) {
      return fmt::format("wrong checksum: git object {} came, {} was expected", part_.git_sha1(), file_.git_sha1);
    }
    return "";
  }

  const RemoteFile& file_;
  const fs::path& target_;
  const NetworkOptions& options_;
  PartFile part_;
  Fetched result_;
  std::optional<std::uint64_t> total_;
  std::string sha256_;  // what the server says
  std::uint64_t next_check_ = 0;
  bool moved_ = false, continued_ = false;
};

}  // namespace

Fetched download(const RemoteFile& file, const fs::path& target, const NetworkOptions& options) {
  return Download(file, target, options).run();
}

Described describe(const RemoteFile& file, const NetworkOptions& options) {
  return with_retries(
      options, file.name,
      [&] {
        Described found;
        Exchange exchange{options, file.name, {{"Accept-Encoding", "identity"}, {"User-Agent", "sardonyx/" SDX_VERSION}}, {}, {},
                          {},      {}};
        if (!file.known_etag.empty()) exchange.headers.emplace_back("If-None-Match", file.known_etag);
        exchange.accept = [&](const Response& r) {
          found.unchanged = r.status == 304;
          found.etag = found.unchanged ? file.known_etag : r.header("ETag");
          if (const std::string& linked = exchange.linked_etag; linked.size() == 66) found.sha256 = linked.substr(1, 64);
          if (!found.unchanged) found.bytes = number(r.header("Content-Length"));
          return false;
        };
        exchange.run(file.url);
        if (found.bytes) check_allowed(*found.bytes, options, file.name);
        return found;
      },
      [] { return false; }, [] { return false; });
}

std::string get_text(const Url& url, const std::string& what, const NetworkOptions& options) {
  return with_retries(
      options, what,
      [&] {
        std::string body;
        Exchange exchange{options, what, {{"Accept-Encoding", "identity"}, {"User-Agent", "sardonyx/" SDX_VERSION}}, {}, {},
                          {},      {}};
        exchange.accept = [](const Response&) { return true; };
        exchange.on_data = [&](const char* data, std::size_t size) {
          if (body.size() + size > kTextLimit) fail(ErrorCode::io, "{}: {} answers with more than 32 MiB", what, url.text());
          body.append(data, size);
          return true;
        };
        exchange.run(url);
        return body;
      },
      [] { return false; }, [] { return false; });
}

std::string sha256_of(const fs::path& path) {
  Digest digest("sha256");
  read_pieces(path, [&](std::span<const std::byte> piece) { digest.update(piece.data(), piece.size()); });
  return digest.hex();
}

void check_allowed(std::uint64_t bytes, const NetworkOptions& options, const std::string& what) {
  if (bytes <= options.max_bytes) return;
  fail(ErrorCode::invalid_argument, "{}: it has {} bytes, more than the allowed {} (--max-size)", what, bytes, options.max_bytes);
}

void check_space(const fs::path& folder, std::uint64_t bytes, const std::string& what) {
  std::error_code unknown;
  const std::uint64_t free = fs::space(folder.empty() ? fs::path(".") : folder, unknown).available;
  if (unknown) return;
  if (free < bytes + kSpaceStep) {
    fail(ErrorCode::io, "{}: {} bytes are needed, and {} are free on the file system of '{}' (64 MiB are kept free)", what, bytes,
         free, folder.string());
  }
}

}  // namespace sdx::hub
