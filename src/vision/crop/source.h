#pragma once
// The input of the filter: a part of a picture with colours multiplied by opacity, either as it is or averaged down.

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "vision/crop/resample.h"

namespace sdx::vision {

// Rows of T; coordinates count cells of the whole picture.
template <class T>
struct View {
  const T* data = nullptr;
  std::size_t stride = 0;  // elements from row to row
  int x = 0, y = 0;        // of the first element
  int channels = 0;

  const T* at(int column, int row) const {
    return data + static_cast<std::size_t>(row - y) * stride +
           static_cast<std::size_t>(column - x) * static_cast<std::size_t>(channels);
  }
};

// Pictures with opacity have colour times opacity (0 to 65025), and opacity times 255.
class Source {
 public:
  // `region` in pixels, within the part; with `reduction`, it begins at multiples of that.
  Source(const Part& part, const faces::Region& region, int reduction);
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  const std::variant<View<std::uint8_t>, View<std::uint16_t>, View<float>>& view() const { return view_; }

 private:
  void multiply(const Part& part, const faces::Region& region);
  void average(const Part& part, const faces::Region& region, int reduction);

  std::variant<View<std::uint8_t>, View<std::uint16_t>, View<float>> view_;
  std::vector<std::uint16_t> multiplied_;
  std::vector<float> averaged_;
};

}  // namespace sdx::vision
