#pragma once
// Work in a process forked from this one.

#include <sys/types.h>

#include "base/tools_api.h"

namespace sdx {

// Whether this process has a single thread, so that forking is safe.
SDX_TOOLS_API bool can_fork();

// As ::fork(). What is in buffers is written first, else the child would write it once more. The child ends when this process
// does; what is printed there goes to standard error, because what a vendor's library prints is no result. It leaves by
// ::_exit(): the parent's destructors and buffers are not its own.
SDX_TOOLS_API pid_t fork_worker();

}  // namespace sdx
