#pragma once
// Sound of any format. Plain WAV is read here; libsdx_sndfile.so, which is loaded when it is needed, reads other encodings of
// WAV, RF64, Wave64, AIFF, AU, FLAC, Ogg (Vorbis, Opus, FLAC) and MP3.

#include <cstddef>
#include <filesystem>
#include <span>

#include "base/tools_api.h"
#include "media/sound/wav.h"

namespace sdx::media {

// The most frames, of all channels together: 1 GiB of floats.
constexpr std::int64_t kMostFrames = std::int64_t{1} << 28;

// Whether the file begins like a kind of sound that decode_sound() reads.
SDX_TOOLS_API bool is_sound(std::span<const std::byte> bytes);
// ".wav", ".flac", …
SDX_TOOLS_API bool has_sound_ending(const std::filesystem::path& file);

// Throws Error(invalid_argument) for damaged files, Error(out_of_memory) for sound that is too long, and Error(io) where the
// library cannot be loaded, with the name of Debian's package.
Sound decode_sound(std::span<const std::byte> bytes);
Sound read_sound(const std::filesystem::path& file);
// The same in pieces, of any length and in constant memory. What the sink throws comes out.
SDX_TOOLS_API void stream_sound(std::span<const std::byte> bytes, const SoundSink& sink);

}  // namespace sdx::media
