#pragma once
// Work in a process forked from this one.

#include <sys/types.h>

#include "base/tools_api.h"

namespace sdx {

// Whether this process has a single thread, so that forking is safe.
SDX_TOOLS_API bool can_fork();

// Works like ::fork(). Buffers are written first, or the child would write them once more. The child ends when this process does;
// it prints to standard error, because output of a vendor's library is no result. It ends by ::_exit(), since the parent's
// destructors and buffers are not its own.
SDX_TOOLS_API pid_t fork_worker();  // on POSIX alone

}  // namespace sdx
