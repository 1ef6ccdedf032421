#pragma once
// The MODEL of a command: found once, in the same way by all of them.

#include <string>
#include <vector>

#include "cli/session_flags.h"
#include "project/resolve.h"

namespace sdx::cli {

// Finds the model that flags.model names, with options as flags.asked() says; it is converted where --dtype or the registry says
// so. Throws UsageError, Error.
project::ResolvedModel resolve(const SessionFlags& flags);

// The same for a dry run, without converting the model.
project::ResolvedModel resolve_unconverted(const SessionFlags& flags);

// Opens it, the project's build where that is up to date, and shows the model's warnings on stderr.
Session open(const project::ResolvedModel& model);

// The entry's default shapes as values of --shape ("input=[1,3]") in front of `shapes`, which win, and a note where its element
// type is not the model's. Throws Error(invalid_argument) where the entry names an input that the model does not have.
void apply_entry(const RegistryEntry& entry, const std::vector<ValueSpec>& specs, std::vector<std::string>& shapes);

}  // namespace sdx::cli
