#pragma once
// Rotary embeddings in config.json.

#include <optional>

#include "text/model/config_object.h"
#include "text/model/network/decoder_config.h"
#include "text/model/network/hf_defaults.h"

namespace sdx::text {

std::optional<ConfigObject> scaling_object(ConfigObject& o);
// Sets `rope`, `local_rope` and, where the angles stretch it, `context`.
void read_ropes(ConfigObject& o, const HfDefaults& d, DecoderConfig& c);

}  // namespace sdx::text
