#pragma once
// A record of a batch's finished pictures beside its outputs, so that a later run continues there.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/system/file.h"

namespace sdx::vision::batch {

// Identifies an input file and its state.
struct Identity {
  std::string path;  // absolute
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;
  bool operator==(const Identity&) const = default;
};
// nullopt where there is no regular file.
std::optional<Identity> identity_of(const std::filesystem::path& file);

// Now: 20260102T030405Z.
std::string timestamp_now();

struct JournalEntry {
  Identity input;
  std::string folder, stem;  // the outputs' folder below that of the run, and the name given to this picture
  std::string label;         // distinguishes pictures of one file: the name that a table gives
  std::vector<std::pair<std::string, std::uint64_t>> outputs;  // paths as written, and their sizes
  std::string record;                                          // record_json() with outputs
};

// Lines of JSON, one for each finished picture, only ever appended to: a line that was cut short by the end of a process is left
// out when it is read. Runs with other settings keep their lines beside each other. One thread at a time; several processes may
// append to one file.
class Journal {
 public:
  static constexpr const char* kName = ".sdx-faces.jsonl";

  // `settings`: a hash of everything that changes the outputs. `resume`: this run continues earlier ones with the same settings.
  // Throws Error(io). `dry`: the journal is only read, and add() keeps nothing.
  Journal(const std::filesystem::path& folder, std::string settings, bool resume, bool dry = false);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  bool existed() const { return existed_; }
  // Whether an earlier run that this one continues had these settings: its outputs may then be replaced.
  bool begun() const { return begun_; }
  std::size_t entries() const { return resume_ ? entries_.size() : 0; }
  // The time at which the continued run began, or this one: 20260102T030405Z.
  const std::string& timestamp() const { return timestamp_; }

  // When resuming, the entry of an unchanged picture whose outputs all exist with their sizes; else null.
  const JournalEntry* done(const Identity& input, const std::string& label) const;
  // The entry of an earlier run, whether or not its picture has changed: its names are taken.
  const JournalEntry* known(const std::string& path, const std::string& label) const;

  // Like done(), but also without resuming.
  const JournalEntry* finished_earlier(const Identity& input, const std::string& label) const;

  void add(const JournalEntry& entry);
  // Writes to the disk: entries added so far survive a loss of power.
  void sync();

 private:
  void read();
  void append(const std::string& line);

  std::filesystem::path path_;
  std::string settings_, timestamp_;
  bool resume_ = false, existed_ = false, begun_ = false, cut_short_ = false;
  File file_;
  std::unordered_map<std::string, JournalEntry> entries_;  // by path and label
};

}  // namespace sdx::vision::batch
