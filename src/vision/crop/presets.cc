#include <sdx/faces.hpp>

#include "base/error.h"

namespace sdx::faces {
namespace {

// A detector's box goes from about the hairline to the chin; the head, as offices measure it, from the crown to the chin. Over 21
// faces seen from the front a YuNet box covers 0.82 of the head (standard deviation 0.05; the crown taken as far above the eyes
// as the chin is below them), over those that neither smile widely nor look down 0.80: the middle of anthropometric tables too
// (hairline to chin 18.2 cm, crown to chin 22.8 cm).
constexpr double kFaceOfHead = 0.8;

struct Document {
  const char *name, *description;
  double width, height;  // mm
  double head;           // mm from crown to chin: the middle of what is allowed
  double top;            // mm above the crown
};

constexpr double kInches2 = 50.8;

constexpr Document kDocuments[] = {
    {"eu", "EU passport or identity card: 35x45 mm, head 32 to 36 mm", 35, 45, 34, 4},
    {"schengen", "Schengen visa: 35x45 mm, head 32 to 36 mm (70 to 80 %)", 35, 45, 34, 4},
    {"germany", "German passport or identity card: 35x45 mm, head 32 to 36 mm", 35, 45, 34, 4},
    {"france", "French passport or identity card: 35x45 mm, head 32 to 36 mm", 35, 45, 34, 4},
    {"uk", "UK passport: 35x45 mm, head 29 to 34 mm", 35, 45, 31.5, 5},
    {"us", "US passport or visa: 2x2 in, head 1 to 1 3/8 in, eyes 1 1/8 to 1 3/8 in above the lower edge", kInches2, kInches2, 30,
     4.5},
    {"canada", "Canadian passport: 50x70 mm, head 31 to 36 mm", 50, 70, 33.5, 12},
    {"china", "Chinese passport or visa: 33x48 mm, head 28 to 33 mm, 3 to 5 mm above it", 33, 48, 30.5, 4},
    {"india", "Indian passport, visa or OCI card: 2x2 in, head 70 to 80 %", kInches2, kInches2, 38, 5},
    {"india35", "Indian passport or OCI card: 35x35 mm, head 70 to 80 %", 35, 35, 26.25, 3.5},
    {"japan", "Japanese passport: 35x45 mm, head 32 to 36 mm, 2 to 6 mm above it", 35, 45, 34, 4},
    {"korea", "South Korean passport: 35x45 mm, head 32 to 36 mm", 35, 45, 34, 4},
    {"australia", "Australian passport: 35x45 mm, head 32 to 36 mm", 35, 45, 34, 4},
    {"taiwan", "Taiwanese passport: 35x45 mm, head 32 to 36 mm", 35, 45, 34, 4},
    {"hongkong", "Hong Kong passport: 40x50 mm, head 32 to 36 mm", 40, 50, 34, 4.5},
    {"turkey", "Turkish biometric photo: 50x60 mm, head 32 to 36 mm", 50, 60, 34, 7},
};

CropOptions sized(int width, int height) {
  CropOptions options;
  options.width = width;
  options.height = height;
  return options;
}

CropOptions of_document(const Document& d) {
  constexpr double kDpi = 300;
  CropOptions options = sized(mm_to_pixels(d.width, kDpi), mm_to_pixels(d.height, kDpi));
  options.dpi = kDpi;
  options.face_height = 100 * kFaceOfHead * d.head / d.height;
  // The box reaches down to the chin, so that its middle is half its height above that.
  const double middle = d.top + d.head * (1 - kFaceOfHead / 2);
  options.position = Position::custom;
  options.offset_y = 2 * middle / d.height - 1;
  options.align_eyes = true;
  options.colour = {255, 255, 255, 255};
  return options;
}

std::vector<Preset> make() {
  std::vector<Preset> all{{"linkedin", "LinkedIn profile, 400x400", sized(400, 400)},
                          {"passport", "35x45 mm at 300 dpi, the face in the middle, 413x531", sized(413, 531)},
                          {"instagram", "Instagram post, 1080x1080", sized(1080, 1080)},
                          {"idcard", "Identity card, 332x498", sized(332, 498)},
                          {"avatar", "Square avatar, 512x512", sized(512, 512)},
                          {"headshot", "Head and shoulders, 600x800", sized(600, 800)}};
  all[1].options.dpi = 300;
  for (const Document& d : kDocuments) all.push_back({d.name, d.description, of_document(d)});
  return all;
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = make();
  return all;
}

CropOptions preset(std::string_view name) {
  std::string names;
  for (const Preset& p : presets()) {
    if (p.name == name) return p.options;
    names += (names.empty() ? "" : ", ") + p.name;
  }
  fail(ErrorCode::invalid_argument, "there is no preset '{}'; expected one of {}", name, names);
}

}  // namespace sdx::faces
