#pragma once
// What a VoiceDetector holds.

#include <sdx/speech.hpp>

#include "speech/voice/voice_network.h"

namespace sdx::speech {

const VoiceNetwork& network_of(const VoiceDetector& detector);

}  // namespace sdx::speech
