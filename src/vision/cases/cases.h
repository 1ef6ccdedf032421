#pragma once
// Faces and answers of the test data (SDX_TEST_MODELS, folder faces/): JSON files with one case a line, made with other
// libraries.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <sdx/faces.hpp>

namespace sdx::vision::cases {

// Empty where there is none.
inline std::filesystem::path folder() {
  const char* models = std::getenv("SDX_TEST_MODELS");
  if (models == nullptr) return {};
  const std::filesystem::path path = std::filesystem::path(models) / "faces";
  return std::filesystem::exists(path / "crops.json") ? path : std::filesystem::path();
}

// The text after `"key": ` in a line; empty if there is none.
inline std::string after(const std::string& line, const std::string& key) {
  const std::size_t at = line.find("\"" + key + "\": ");
  return at == std::string::npos ? "" : line.substr(at + key.size() + 4);
}

inline std::string text(const std::string& line, const std::string& key) {
  const std::string rest = after(line, key);
  return rest.empty() ? "" : rest.substr(1, rest.find('"', 1) - 1);
}

inline double number(const std::string& line, const std::string& key) { return std::strtod(after(line, key).c_str(), nullptr); }

// All numbers of a list, inner lists in order.
inline std::vector<double> numbers(const std::string& line, const std::string& key) {
  const std::string rest = after(line, key);
  std::vector<double> out;
  int depth = 0;
  for (std::size_t i = 0; i < rest.size();) {
    if (rest[i] == '[') ++depth;
    if (rest[i] == ']' && --depth == 0) break;
    if (rest[i] == '-' || (rest[i] >= '0' && rest[i] <= '9')) {
      char* end = nullptr;
      out.push_back(std::strtod(rest.c_str() + i, &end));
      i = static_cast<std::size_t>(end - rest.c_str());
    } else {
      ++i;
    }
  }
  return out;
}

// The lines of crops.json's list `name`.
inline std::vector<std::string> lines(const std::string& name) {
  std::ifstream file(folder() / "crops.json");
  std::vector<std::string> out;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(" \"")) inside = line.starts_with(" \"" + name + "\": [");
    if (inside && line.starts_with("  {")) out.push_back(line);
  }
  return out;
}

inline faces::Face face_of(const double* row) {
  const auto f = [&](int i) { return static_cast<float>(row[i]); };
  faces::Face face{{f(0), f(1), f(2), f(3)}, f(14), {}};
  face.points.right_eye = {f(4), f(5)};
  face.points.left_eye = {f(6), f(7)};
  face.points.nose = {f(8), f(9)};
  face.points.right_mouth = {f(10), f(11)};
  face.points.left_mouth = {f(12), f(13)};
  return face;
}

// YuNet's rows at the picture's own size.
inline std::vector<faces::Face> faces_of(const std::string& picture) {
  std::ifstream file(folder() / "expected.json");
  std::vector<faces::Face> out;
  for (std::string line; std::getline(file, line);) {
    if (line.find("\"" + picture + "\": {") == std::string::npos) continue;
    const std::vector<double> rows = numbers(after(line, "yunet_2023mar"), "native");
    for (std::size_t i = 0; i + 15 <= rows.size(); i += 15) out.push_back(face_of(rows.data() + i));
    break;
  }
  return out;
}

inline media::Image picture(const std::string& name) { return media::read_image(folder() / "pictures" / name); }

}  // namespace sdx::vision::cases
