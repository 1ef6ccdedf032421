#pragma once
// Chooses the best of several faces, by what is known of them.

#include <span>

#include <sdx/faces.hpp>

namespace sdx::vision {

// The index of the face with the highest level, then score; else the first. At least one face, and a level for each.
std::size_t best_of(std::span<const faces::Face> faces, std::span<const faces::Level> levels);

}  // namespace sdx::vision
