// Highway's sorting refers to this where a vector has too few lanes, in code that is never reached and that the optimiser
// removes. Unoptimised builds need it, and Highway's own library is not linked.

#include <hwy/base.h>

#include "base/error.h"

namespace hwy {

// As in hwy/base.h; the message's arguments are left out.
HWY_NORETURN void Abort(const char* file, int line, const char* format, ...) {
  sdx::fail(sdx::ErrorCode::internal, "Highway: {} ({}:{})", format, file, line);
}

}  // namespace hwy
