#pragma once
// One file from the network, resumable and checked.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "hub/transport.h"

namespace sdx::hub {

struct NetworkOptions {
  std::chrono::milliseconds timeout{30000};          // to connect, and the longest time in which fewer than 1 KiB come
  int retries = 4;                                   // further attempts after a broken or stalled connection, 429 or 5xx
  std::uint64_t max_bytes = std::uint64_t{1} << 40;  // of one file
  std::string token;                                 // sent to `token_host` alone, never to where that redirects
  std::string token_host;                            // "https://host:port"
  std::function<void(const std::string&)> note;      // a line for people: retries
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;  // bytes of the file; total 0: unknown
};

struct RemoteFile {
  Url url;
  std::string name;                    // for messages
  std::optional<std::uint64_t> bytes;  // where known
  std::string sha256;                  // where known, lower case
  std::string git_sha1;                // where known: of "blob SIZE\0" and the content, as git names files
  std::string known_etag;              // the caller has this version: ask only for another
};

struct Fetched {
  bool unchanged = false;  // the server still has `known_etag`
  std::uint64_t bytes = 0;
  std::uint64_t received = 0;  // of these, over the network now
  std::string sha256;
  std::string etag;  // of the last answer; may be empty
};

// Downloads to `target` by way of `target`.part, which a later call continues if the server still has the same version (ETag).
// `target` appears only when size and checksums fit. Throws Error(io) naming the address, what came, and what helps;
// Error(invalid_argument) beyond max_bytes.
Fetched download(const RemoteFile& file, const std::filesystem::path& target, const NetworkOptions& options);

struct Described {
  bool unchanged = false;              // the server still has `known_etag`
  std::optional<std::uint64_t> bytes;  // if the server says
  std::string sha256, etag;            // likewise; may be empty
};
// Queries the server about a file without fetching it. Throws as download() does.
Described describe(const RemoteFile& file, const NetworkOptions& options);

// The body of a small document (at most 32 MiB), and the server's name for it.
std::string get_text(const Url& url, const std::string& what, const NetworkOptions& options);

// Lower-case hexadecimal SHA-256 of a file. Throws Error(io).
std::string sha256_of(const std::filesystem::path& path);

// Throws Error(invalid_argument) beyond max_bytes.
void check_allowed(std::uint64_t bytes, const NetworkOptions& options, const std::string& what);

// Throws Error(io) unless the file system of `folder` has room for `bytes` and 64 MiB to spare.
void check_space(const std::filesystem::path& folder, std::uint64_t bytes, const std::string& what);

}  // namespace sdx::hub
