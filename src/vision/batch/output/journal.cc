#include "vision/batch/output/journal.h"

#include <fmt/format.h>

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
  const auto stamp = file_stamp(file);
  if (!stamp) return std::nullopt;
  std::error_code error;
  const fs::path absolute = fs::absolute(file, error).lexically_normal();
  return Identity{text_of(absolute), stamp->bytes, stamp->modified_ns};
}

Journal::Journal(const fs::path& folder, std::string settings, bool resume, bool dry)
    : path_(folder / kName), settings_(std::move(settings)), timestamp_(timestamp_now()), resume_(resume) {
  std::error_code ignored;
  existed_ = fs::exists(path_, ignored);
  if (existed_) read();
  if (dry) return;
  file_ = File::open(path_, File::For::appending);
  if (!file_) fail(ErrorCode::io, "cannot write to '{}': {}", text_of(folder), std::strerror(errno));
  if (cut_short_) append("\n");
  append(Json{{"version", kVersion}, {"run", settings_}, {"timestamp", timestamp_}}.dump() + "\n");
}

void Journal::read() {
  const std::string content = read_file(path_);
  std::string begun;
  for (std::size_t at = 0; at < content.size();) {
    const std::size_t end = content.find('\n', at);
    cut_short_ = end == std::string::npos;
    if (cut_short_) break;
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
  if (file_ && !file_.write(line.data(), line.size())) {
    fail(ErrorCode::io, "cannot write to '{}': {}", text_of(path_), std::strerror(errno));
  }
}

void Journal::sync() {
  if (file_ && !file_.sync() && errno != EROFS) {
    fail(ErrorCode::io, "cannot write '{}' to the disk: {}", text_of(path_), std::strerror(errno));
  }
}

}  // namespace sdx::vision::batch
