#pragma once
// Files of more than 4 MiB are mapped, not copied. Whoever cuts one short while it is in use makes reading beyond its new end
// raise SIGBUS, which ends the process. Files that are replaced by rename do no harm.

#include <sdx/export.hpp>

namespace sdx {

// From now on and for as long as the process runs, what a mapped file no longer has reads as zeros, and the file counts as
// damaged: runs of sessions that use it throw Error(io), and what was read never becomes a result. Installs a handler of SIGBUS.
// It passes all other faults on to the handler that was there before, so a program installs its own one first. Thread-safe; calls
// after the first do nothing.
SDX_API void survive_mapped_faults();

// Throws Error(io) naming the file if any part of a mapped file could not be read since survive_mapped_faults(). Sessions check
// this by themselves; a program that computes with arrays, tensors or parameters from files asks before it uses the results.
SDX_API void check_mapped_files();

}  // namespace sdx
