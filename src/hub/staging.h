#pragma once
// A folder in which a pull collects files until it has all of them.

#include <filesystem>
#include <map>
#include <string>

#include "base/system/file.h"
#include "hub/pull.h"

namespace sdx::hub {

// ".pull-NAME" beside the target, locked while the object lives. files/ becomes the target; state.json says what files/ is for,
// and which of its files are complete.
class Staging {
 public:
  // `plan`: source and revision; files collected for another one are dropped. Throws Error(io), also if another process holds the
  // lock.
  Staging(const std::filesystem::path& target, const std::string& plan);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // The path for a file of this (safe) name; its folders exist then.
  std::filesystem::path path_of(const std::string& name) const;
  // The complete file of this name, or null.
  const PulledFile* done(const std::string& name) const;
  void add(const PulledFile& file);
  // Marks the collected files as useless: the destructor removes them. It also does so if there are none.
  void drop() noexcept;
  // Puts files/ in the target's place, in one step as far as the file system can.
  void commit();

 private:
  void write_state() const;

  std::filesystem::path target_, folder_;
  std::string plan_;
  std::map<std::string, PulledFile> done_;
  File lock_;
  bool useless_ = false;
};

// kPullRecord of a model's folder.
void write_manifest(const std::filesystem::path& folder, const Pulled& pulled);
// The manifest of a folder whose files have the sizes that it lists; otherwise a Pulled without files.
Pulled read_manifest(const std::filesystem::path& folder);

}  // namespace sdx::hub
