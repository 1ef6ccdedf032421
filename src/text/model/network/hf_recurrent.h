#pragma once
// Keys of config.json of architectures with recurrent layers.

#include "text/model/config_object.h"
#include "text/model/network/hf_config.h"
#include "text/model/network/hf_defaults.h"

namespace sdx::text {

// Gated delta nets: Qwen3-Next, Qwen3.5.
void read_delta(ConfigObject& o, DeltaConfig& d);
// Selective scans: Granite 4, Falcon-H1, Nemotron-H, Mamba 2.
void read_scan(ConfigObject& o, const HfDefaults& d, HfNetwork& n);
// LFM2.
void read_short_convolution(ConfigObject& o, DecoderConfig& c);
// Nemotron-H has a list of layers in place of their number.
std::int64_t listed_layers(ConfigObject& o);

}  // namespace sdx::text
