// Pictures through the installed library: drawn, written, read back, and run through a model.
#include <cstdio>
#include <filesystem>
#include <sdx/image.hpp>
#include <sdx/sdx.hpp>

#include "model.h"

namespace fs = std::filesystem;
namespace media = sdx::media;

int main() {
  const fs::path file = fs::temp_directory_path() / "sdx_outside_image.png";
  media::Image drawn = media::Image::blank(8, 4);
  media::fill_rectangle(drawn, 0, 0, 8, 4, {255, 0, 51});
  media::write_image(file, drawn);
  const media::Image picture = media::read_image(file);
  fs::remove(file);
  if (picture.width != 8 || picture.height != 4 || picture.pixels != drawn.pixels) return 1;

  sdx::Preprocessing p;
  p.width = p.height = 2;
  p.fit = sdx::Preprocessing::Fit::letterbox;
  p.fill = 0;
  media::Placement where;
  const sdx::Tensor input = media::to_tensor(picture, p, nullptr, &where);
  if (input.type_string() != "float32[1,3,2,2]" || where.scale_x != 0.25 || where.scale_y != 0.25) return 2;
  const sdx::Session session = sdx::Session::from_bytes(std::as_bytes(std::span(kModel)));
  const sdx::NamedValues out = session.run({{"x", input.reshaped({12})}});
  const auto y = out.tensor("y").values<float>();
  if (y[0] != -1.0F || y[8] != -51.0F * (1.0F / 255.0F)) return 3;  // red and blue of the first pixel
  try {
    drawn.pixels.clear();
    media::to_tensor(drawn);
    return 4;
  } catch (const sdx::Error& e) {  // across the library's border
    std::puts(e.what());
  }
  return 0;
}
