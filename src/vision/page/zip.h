#pragma once
// ZIP files (APPNOTE 6.3) whose entries are stored as they are: pictures do not shrink any further.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace sdx::faces::page {

class ZipWriter {
 public:
  // A second entry of the same name becomes "name-2.ext". Names are plain file names in UTF-8: what could lead out of a folder,
  // or upset a file system, becomes '_'. Throws Error(out_of_memory) beyond 65535 entries or 4 GiB.
  void add(std::string_view name, std::string_view bytes);
  // The whole file; nothing can be added afterwards.
  std::string finish();

 private:
  struct Entry {
    std::string name;
    std::uint32_t crc, size, offset;
  };
  std::string out_;
  std::vector<Entry> entries_;
  std::unordered_set<std::string> names_;
};

// "../a:b" becomes "__a_b", at most 200 bytes long; never empty.
std::string harmless_name(std::string_view name);

}  // namespace sdx::faces::page
