#pragma once

#include <string>
#include <string_view>

#include "base/tools_api.h"

namespace sdx {

// The name of others' library "foo" on this system: "libfoo.so", on Windows "foo.dll".
SDX_TOOLS_API std::string shared_library_name(std::string_view stem);

}  // namespace sdx
