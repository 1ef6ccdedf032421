#include "media/model_input.h"

#include <sdx/image.hpp>

#include "media/sound/sound.h"

namespace sdx::media {

Tensor read_picture(const std::filesystem::path& file, const ValueSpec* spec, const Preprocessing& p) {
  return to_tensor(read_image(file), p, spec);
}

namespace {

Tensor fitting(const Sound& sound, const ValueSpec* spec, const Preprocessing& p) {
  Tensor t = to_tensor(sound, p.sample_rate);
  const std::size_t rank = spec != nullptr && spec->has_shape ? spec->shape.size() : 2;
  if (rank < 1 || rank > 4) return t;
  Shape shape(rank, 1);
  shape.back() = t.size();
  return t.reshaped(shape);
}

}  // namespace

Tensor read_sound(const std::filesystem::path& file, const ValueSpec* spec, const Preprocessing& p) {
  return fitting(read_sound(file), spec, p);
}

Tensor decode_sound(std::span<const std::byte> bytes, const ValueSpec* spec, const Preprocessing& p) {
  return fitting(decode_sound(bytes), spec, p);
}

}  // namespace sdx::media
