#include "vision/judge/pose.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace sdx::vision {
namespace {

constexpr std::size_t kPoints = 5;
using Vector = std::array<double, 3>;

// A mean adult's right and left pupil, tip of the nose, right and left corner of the mouth in mm: to the picture's right,
// downwards, away from the viewer. Across and down they are the proportions of ArcFace's template, but for the nose, which lies
// there as in heads bent slightly forward; the depths are those of anthropometric tables.
constexpr std::array<Vector, kPoints> kFace{{{-31.5, 0, 0}, {31.5, 0, 0}, {0, 39, -32}, {-26, 72, -6}, {26, 72, -6}}};

// Rows of the pseudo-inverse of the centred face: an affine map's three columns as weights of the five points.
std::array<std::array<double, kPoints>, 3> pseudo_inverse() {
  Vector mean{};
  for (const Vector& p : kFace) {
    for (std::size_t i = 0; i < 3; ++i) mean[i] += p[i] / kPoints;
  }
  std::array<Vector, kPoints> points = kFace;
  std::array<Vector, 3> m{};  // points^T points
  for (Vector& p : points) {
    for (std::size_t i = 0; i < 3; ++i) p[i] -= mean[i];
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 3; ++j) m[i][j] += p[i] * p[j];
    }
  }
  const auto minor = [&](std::size_t i, std::size_t j) {
    const std::size_t a = (i + 1) % 3, b = (i + 2) % 3, c = (j + 1) % 3, d = (j + 2) % 3;
    return m[a][c] * m[b][d] - m[a][d] * m[b][c];
  };
  const double determinant = m[0][0] * minor(0, 0) + m[0][1] * minor(0, 1) + m[0][2] * minor(0, 2);
  std::array<std::array<double, kPoints>, 3> inverse{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t k = 0; k < kPoints; ++k) {
      for (std::size_t j = 0; j < 3; ++j) inverse[i][k] += minor(j, i) / determinant * points[k][j];
    }
  }
  return inverse;
}

double dot(const Vector& a, const Vector& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

// The two rows made orthonormal, each changed as little: (A A^T)^(-1/2) A. False where they are nearly dependent.
bool orthonormalise(Vector& first, Vector& second) {
  const double a = dot(first, first), b = dot(first, second), c = dot(second, second);
  const double determinant = a * c - b * b;
  if (!(determinant > 1e-6 * (a + c) * (a + c))) return false;
  const double root = std::sqrt(determinant), trace = std::sqrt(a + c + 2 * root);
  // The square root is [[a + root, b], [b, c + root]] / trace, and its determinant `root`.
  const double p = (c + root) / trace / root, q = -b / trace / root, r = (a + root) / trace / root;
  const Vector old = first;
  for (std::size_t i = 0; i < 3; ++i) {
    first[i] = p * old[i] + q * second[i];
    second[i] = q * old[i] + r * second[i];
  }
  return true;
}

}  // namespace

std::optional<Pose> estimate_pose(const faces::Points& points) {
  if (!points.complete()) return std::nullopt;
  static const auto inverse = pseudo_inverse();
  const std::array seen{*points.right_eye, *points.left_eye, *points.nose, *points.right_mouth, *points.left_mouth};
  Vector across{}, down{};
  for (std::size_t k = 0; k < kPoints; ++k) {
    for (std::size_t i = 0; i < 3; ++i) {
      across[i] += inverse[i][k] * static_cast<double>(seen[k].x);
      down[i] += inverse[i][k] * static_cast<double>(seen[k].y);
    }
  }
  if (!orthonormalise(across, down)) return std::nullopt;
  // R = Ry(yaw) Rx(pitch) Rz(roll) with rows `across`, `down` and their product; the face looks along -R's third column.
  const double ahead = across[0] * down[1] - across[1] * down[0];
  constexpr double kDegrees = 180 / std::numbers::pi;
  const Pose pose{std::atan2(-across[2], ahead) * kDegrees, std::asin(std::clamp(down[2], -1.0, 1.0)) * kDegrees,
                  std::atan2(down[0], down[1]) * kDegrees};
  if (!std::isfinite(pose.yaw) || !std::isfinite(pose.pitch) || !std::isfinite(pose.roll)) return std::nullopt;
  return pose;
}

}  // namespace sdx::vision
