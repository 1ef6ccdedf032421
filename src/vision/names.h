#pragma once
// The names of points, levels and settings in flags, files, JSON and Python.

#include <array>
#include <optional>
#include <string_view>

#include <sdx/faces.hpp>

namespace sdx::vision {

struct NamedPoint {
  const char* name;
  std::optional<faces::Point> faces::Points::*member;
};
// First the five that alignment needs.
inline constexpr std::array<NamedPoint, 8> kPoints{{{"right_eye", &faces::Points::right_eye},
                                                    {"left_eye", &faces::Points::left_eye},
                                                    {"nose", &faces::Points::nose},
                                                    {"right_mouth", &faces::Points::right_mouth},
                                                    {"left_mouth", &faces::Points::left_mouth},
                                                    {"mouth", &faces::Points::mouth},
                                                    {"right_ear", &faces::Points::right_ear},
                                                    {"left_ear", &faces::Points::left_ear}}};

// Puts change(point) in the place of each point that there is.
template <class F>
void change_points(faces::Points& points, const F& change) {
  for (const NamedPoint& p : kPoints) {
    if (auto& point = points.*p.member) point = change(*point);
  }
}

// In the order of the enumerations.
using Words = std::array<std::string_view, 3>;
inline constexpr Words kLevels{"low", "medium", "high"};
inline constexpr Words kPositions{"center", "rule-of-thirds", "custom"};
inline constexpr Words kShapes{"rectangle", "rounded", "ellipse"};
inline constexpr Words kMethods{"blur", "mosaic", "box"};

template <class Enum>
constexpr std::string_view word_of(const Words& words, Enum value) {
  return words.at(static_cast<std::size_t>(value));
}

}  // namespace sdx::vision
