#pragma once
// ZIP archives (APPNOTE 6.3) in memory, dated 1980-01-01: equal contents give equal archives.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/tools_api.h"

namespace sdx {

class SDX_TOOLS_API ZipWriter {
 public:
  // Whether the format can hold another member of this many bytes: 65534 members, 4 GiB.
  bool fits(std::size_t bytes) const;
  // A member that fits(), under a name of its own of at most 65535 bytes in UTF-8. The content begins at a multiple of `align`.
  void add(std::string_view name, std::string_view bytes, bool compress = false, std::size_t align = 1);
  // The archive; nothing can be added afterwards.
  std::string finish();

 private:
  std::string out_, directory_;
  std::uint32_t members_ = 0;
};

}  // namespace sdx
