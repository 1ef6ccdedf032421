#pragma once
// A provider that fails on demand, to see what a program does when an accelerator does. Exists only where the environment
// variable SDX_TEST_PROVIDER is set (docs/environment.md).

#include <string_view>

#include "providers/interface/provider.h"

namespace sdx::fault {

// Answers for "fault", where there is one. Runs operators by their reference kernels. Its options say what goes wrong, and when;
// runs are counted from 1 for each compiled model:
//   fail_probe=TEXT     is not available, for this reason
//   fail_compile=TEXT   cannot compile anything
//   throw_compile=TEXT  throws a std::logic_error instead of an Error
//   compile_ms=N        compiling takes so long
//   run_ms=N            each run takes so much longer
//   fault=KIND          error (the default with `at`), hang, shape, type, nan, value (off by one)
//   at=N                the first run with that fault
//   count=N             how many runs have it (1); 0: all from there on
//   hang_ms=N           how long a hang lasts at most (10000); a cancelled run ends it
const Provider* find(std::string_view name);

}  // namespace sdx::fault
