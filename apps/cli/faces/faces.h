#pragma once
// What the subcommands of `sdx faces` share.

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/session_flags.h"
#include "vision/batch/request.h"

namespace sdx::cli {

void add_faces_page(const Command& faces, Action& action);

// Ends with UsageError where `with` finds that the request makes no sense: before a model is looked for.
void check_request(void (*with)(const vision::Request&), const vision::Request& request);

// The model that was named, or a detector among the user's models, into `request`, with its session.
void find_model(SessionFlags& session, vision::Request& request);

}  // namespace sdx::cli
