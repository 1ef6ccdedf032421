#pragma once
// Names of the files that a batch writes.

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sdx::vision::batch {

struct NameValues {
  std::string stem;  // of the picture, unlike those of all other pictures in its folder
  int index = 1;     // of the face, from 1
  int width = 0;     // of what is written
  int height = 0;
  std::string extension;  // "jpg"
  std::string quality;    // "low", "medium", "high"; "none" for a picture without faces
  std::string timestamp;  // of the run: 20260102T030405Z
};

// "{stem}_face{index}.{ext}": text with placeholders. Without "{ext}" and without the ending of a format of pictures it gets
// ".{ext}" behind it.
class NameTemplate {
 public:
  // Throws Error(invalid_argument) for placeholders that there are not, braces left open, and names that no file may have.
  explicit NameTemplate(std::string_view text);

  // A relative path below the output's folder. Throws Error(invalid_argument) for what would leave it: "..", absolute paths,
  // parts longer than 255 bytes.
  std::string make(const NameValues& values) const;
  // The same with a stem that is shortened where a part would be longer than 255 bytes.
  std::string make_fitting(NameValues values) const;
  bool uses(std::string_view placeholder) const;
  // "png" of "{stem}.png"; "" where the template leaves it open.
  const std::string& fixed_ending() const { return ending_; }

 private:
  struct Part {
    bool placeholder;
    std::string text;
  };
  std::string filled(const NameValues& values) const;
  std::string fitting_stem(const NameValues& values) const;
  std::vector<Part> parts_;
  std::string ending_;
};

// Makes a valid file name: backslashes, colons, slashes and control characters become '_', and so does a leading dot.
std::string safe_stem(std::string_view stem);

// The same for names that file systems of Windows and macOS take for one: they differ in case, or in how accents are encoded.
std::string folded(std::string_view name);

// Gives each picture of a folder a stem of its own: the second "photo" becomes "photo-2", and so does "Photo".
class Stems {
 public:
  std::string take(const std::string& folder, const std::string& stem);
  // One that an earlier run gave out.
  void reserve(const std::string& folder, const std::string& stem);

 private:
  std::unordered_map<std::string, int> taken_;  // folded, and the last number given out for it
};

}  // namespace sdx::vision::batch
