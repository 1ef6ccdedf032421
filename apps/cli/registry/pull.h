#pragma once
// `sdx pull`, which is `sdx models pull` too.

#include "cli/arguments.h"
#include "cli/command.h"

namespace sdx::cli {

void add_pull_flags(const Command& command, Action& action);

}  // namespace sdx::cli
