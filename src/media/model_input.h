#pragma once
// Pictures and sound as the inputs of a model.

#include <filesystem>

#include <sdx/project.hpp>
#include <sdx/session.hpp>

namespace sdx::media {

// A picture as the value of an input (`spec` may be null). What `p` leaves open follows from the input's declared shape and type:
// size, layout (the axis of 1 or 3 is colour), grey for one channel, integers unscaled. `assumed` is set where floats were scaled
// to 0..1 because nothing was said. Throws Error(io | invalid_argument | out_of_memory).
Tensor read_picture(const std::filesystem::path& file, const ValueSpec* spec, const Preprocessing& p, bool* assumed = nullptr);

// A .wav file, at p.sample_rate samples a second unless that is 0, in as many dimensions as the input has; float32.
Tensor read_sound(const std::filesystem::path& file, const ValueSpec* spec, const Preprocessing& p);

}  // namespace sdx::media
