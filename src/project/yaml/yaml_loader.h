#pragma once
// Finding the YAML parser.

#include "project/yaml/yaml_events.h"

namespace sdx {

// Throws Error(io) where this build reads YAML through libsdx_yaml.so and that cannot be loaded, with every place that was tried.
SdxYamlEventsFunction yaml_events_function();

}  // namespace sdx
