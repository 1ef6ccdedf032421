#include "vision/batch/output/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/system/new_file.h"
#include "base/text/json_text.h"

namespace sdx::vision::batch {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kVersion = 1;

// A path as JSON can hold it: bytes that are not UTF-8 would be lost, so that all beyond ASCII and '%' are written by number.
std::string packed(const std::string& path) {
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x80 && c != '%' ? std::string(1, c) : fmt::format("%{:02x}", byte);
  }
  return out;
}

std::string unpacked(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%' || i + 2 >= text.size()) {
      out += text[i];
      continue;
    }
    out += static_cast<char>(std::strtol(text.substr(i + 1, 2).c_str(), nullptr, 16));
    i += 2;
  }
  return out;
}

std::string key_of(const std::string& path, const std::string& label) { return path + '\0' + label; }

JournalEntry entry_from(const Json& j) {
  JournalEntry e;
  e.input = {unpacked(j.at("path")), j.at("bytes").get<std::uint64_t>(), j.at("modified_ns").get<std::int64_t>()};
  e.folder = unpacked(j.at("folder"));
  e.stem = unpacked(j.at("stem"));
  e.label = unpacked(j.at("label"));
  for (const Json& output : j.at("outputs")) {
    e.outputs.emplace_back(unpacked(output.at(0)), output.at(1).get<std::uint64_t>());
  }
  e.record = j.at("record").get<std::string>();
  return e;
}

}  // namespace

std::string timestamp_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min,
                     utc.tm_sec);
}

std::optional<Identity> identity_of(const fs::path& file) {
  struct stat s {};
  if (::stat(file.c_str(), &s) != 0 || !S_ISREG(s.st_mode)) return std::nullopt;
  std::error_code error;
  const fs::path absolute = fs::absolute(file, error).lexically_normal();
  return Identity{absolute.string(), static_cast<std::uint64_t>(s.st_size),
                  static_cast<std::int64_t>(s.st_mtim.tv_sec) * 1'000'000'000 + s.st_mtim.tv_nsec};
}

Journal::Journal(const fs::path& folder, std::string settings, bool resume, bool dry)
    : path_(folder / kName), settings_(std::move(settings)), timestamp_(timestamp_now()), resume_(resume) {
  std::error_code ignored;
  existed_ = fs::exists(path_, ignored);
  if (existed_) read();
  if (dry) return;
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd_ < 0) fail(ErrorCode::io, "cannot write to '{}': {}", folder.string(), std::strerror(errno));
  char last = '\n';
  const off_t end = ::lseek(fd_, 0, SEEK_END);
  if (existed_ && end > 0 && ::pread(fd_, &last, 1, end - 1) == 1 && last != '\n') append("\n");
  append(Json{{"version", kVersion}, {"run", settings_}, {"timestamp", timestamp_}}.dump() + "\n");
}

Journal::~Journal() {
  if (fd_ >= 0) ::close(fd_);
}

void Journal::read() {
  const std::string content = read_file(path_);
  std::string begun;
  for (std::size_t at = 0; at < content.size();) {
    const std::size_t end = content.find('\n', at);
    if (end == std::string::npos) break;  // cut short
    const Json j = Json::parse(content.begin() + static_cast<std::ptrdiff_t>(at),
                               content.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    at = end + 1;
    if (!j.is_object()) continue;
    try {
      if (j.at("version") != kVersion) continue;
      if (j.contains("run")) {
        if (j.at("run") == settings_ && begun.empty()) begun = j.at("timestamp").get<std::string>();
      } else if (j.at("settings") == settings_) {
        JournalEntry e = entry_from(j);
        const std::string key = key_of(e.input.path, e.label);
        entries_[key] = std::move(e);
      }
    } catch (const Json::exception&) {
      continue;  // a line that somebody else wrote
    }
  }
  begun_ = resume_ && !begun.empty();
  if (begun_) timestamp_ = begun;
}

const JournalEntry* Journal::known(const std::string& path, const std::string& label) const {
  const auto it = entries_.find(key_of(path, label));
  return !resume_ || it == entries_.end() ? nullptr : &it->second;
}

const JournalEntry* Journal::done(const Identity& input, const std::string& label) const {
  return resume_ ? finished_earlier(input, label) : nullptr;
}

const JournalEntry* Journal::finished_earlier(const Identity& input, const std::string& label) const {
  const auto it = entries_.find(key_of(input.path, label));
  if (it == entries_.end() || it->second.input != input) return nullptr;
  for (const auto& [output, bytes] : it->second.outputs) {
    std::error_code error;
    if (fs::file_size(output, error) != bytes || error) return nullptr;
  }
  return &it->second;
}

void Journal::add(const JournalEntry& e) {
  Json outputs = Json::array();
  for (const auto& [output, bytes] : e.outputs) outputs.push_back({packed(output), bytes});
  const Json j{{"version", kVersion},
               {"settings", settings_},
               {"path", packed(e.input.path)},
               {"bytes", e.input.bytes},
               {"modified_ns", e.input.modified_ns},
               {"folder", packed(e.folder)},
               {"stem", packed(e.stem)},
               {"label", packed(e.label)},
               {"outputs", outputs},
               {"record", e.record}};
  append(dump_json(j) + "\n");
}

void Journal::append(const std::string& line) {
  if (fd_ < 0) return;
  if (!write_all(fd_, line.data(), line.size())) {
    fail(ErrorCode::io, "cannot write to '{}': {}", path_.string(), std::strerror(errno));
  }
}

void Journal::sync() {
  if (fd_ >= 0 && ::fdatasync(fd_) != 0 && errno != EINVAL && errno != EROFS) {
    fail(ErrorCode::io, "cannot write '{}' to the disk: {}", path_.string(), std::strerror(errno));
  }
}

}  // namespace sdx::vision::batch
