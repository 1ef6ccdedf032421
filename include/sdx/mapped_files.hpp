#pragma once
// Files of more than 4 MiB are mapped, not copied. If one is truncated while it is in use, reading beyond its new end raises
// SIGBUS, which ends the process. Files that are replaced by rename do no harm.

#include <sdx/export.hpp>

namespace sdx {

// After this call and until the process ends, missing parts of a mapped file read as zeros, and the file counts as damaged: runs
// of sessions that use it throw Error(io), so that no result comes from such zeros. Installs a handler of SIGBUS, which passes
// all other faults on to the handler that was installed before; a program therefore installs its own one first. Thread-safe;
// further calls do nothing.
SDX_API void survive_mapped_faults();

// Throws Error(io) naming the file if any part of a mapped file could not be read since survive_mapped_faults(). Sessions check
// this by themselves; a program that computes with arrays, tensors or parameters from files asks before it uses the results.
SDX_API void check_mapped_files();

}  // namespace sdx
