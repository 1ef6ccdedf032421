#pragma once
// The flags of `sdx faces …`, group by group.

#include "cli/arguments.h"
#include "cli/session_flags.h"
#include "vision/batch/request.h"

namespace sdx::cli {

void add_paths(const Command& command, vision::Request& r);
void add_detector_flags(const Command& command, SessionFlags& session, vision::Request& r);
void add_crop_flags(const Command& command, vision::Request& r);
void add_align_flags(const Command& command, vision::Request& r);
void add_blur_flags(const Command& command, vision::Request& r);
void add_choice_flags(const Command& command, vision::Request& r);  // which faces
void add_file_flags(const Command& command, vision::Request& r);
void add_table_flags(const Command& command, vision::Request& r);
void add_batch_flags(const Command& command, vision::Request& r);
void add_bench_flags(const Command& command, vision::Request& r);

}  // namespace sdx::cli
