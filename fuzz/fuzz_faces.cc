// Any tensors, read as the outputs of each family of face detectors. Only sdx::Error may come out, nothing may be `internal`, and
// the faces must be usable: finite, with an area, best first.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "vision/detect/decode.h"
#include "vision/detect/looks.h"
#include "vision/detect/suppress.h"

namespace {

class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  int below(int limit) { return limit > 0 ? next() % limit : 0; }
  // Mostly what detectors say, else any bits.
  float number() {
    const std::uint8_t kind = next();
    if (kind < 200) return static_cast<float>(static_cast<std::int8_t>(next())) / 32;
    std::uint32_t bits = 0;
    for (int i = 0; i < 4; ++i) bits = bits << 8U | next();
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  bool left() const { return at_ < size_; }

 private:
  std::uint8_t next() { return at_ < size_ ? data_[at_++] : std::uint8_t{0}; }
  const std::uint8_t* data_;
  std::size_t size_, at_ = 0;
};

struct Made {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

constexpr const char* kNames[] = {"cls_8",   "cls_16", "cls_32", "obj_8",  "obj_16", "obj_32", "bbox_8", "bbox_16",
                                  "bbox_32", "kps_8",  "kps_16", "kps_32", "loc",    "conf",   "iou",    "landms",
                                  "scores",  "boxes",  "537",    "538",    "539",    "540",    "x"};
constexpr std::int64_t kExtents[] = {1, 4, 10, 2, 14, 16, 0, 3, 8, 32, 64, 896, 512, 384};

// As a model of the family would give them for this input, before they are spoilt.
std::vector<Made> usual(sdx::vision::Family family, int width, int height) {
  std::vector<Made> out;
  const auto add = [&](std::string name, std::vector<std::int64_t> shape) {
    out.push_back({std::move(name), std::move(shape), {}});
  };
  const auto cells = [&](int stride) {
    return static_cast<std::int64_t>((width + stride - 1) / stride) * ((height + stride - 1) / stride);
  };
  switch (family) {
    case sdx::vision::Family::yunet:
      for (std::size_t i = 0; i < 12; ++i) add(kNames[i], {1, cells(8 << (i % 3)), i < 6 ? 1 : i < 9 ? 4 : 10});
      break;
    case sdx::vision::Family::scrfd:
      for (int i = 0; i < 9; ++i) add("o", {cells(8 << (i % 3)) * 2, i < 3 ? 1 : i < 6 ? 4 : 10});
      break;
    case sdx::vision::Family::yunet2022:
    case sdx::vision::Family::retinaface: {
      const bool old = family == sdx::vision::Family::yunet2022;
      const std::int64_t n =
          old ? cells(8) * 3 + cells(16) * 2 + cells(32) * 2 + cells(64) * 3 : 2 * (cells(8) + cells(16) + cells(32));
      add("loc", {1, n, old ? 14 : 4});
      add("conf", {1, n, 2});
      add(old ? "iou" : "landms", {1, n, old ? 1 : 10});
      break;
    }
    case sdx::vision::Family::ultraface:
      add("scores", {1, cells(8), 2});
      add("boxes", {1, cells(8), 4});
      break;
    case sdx::vision::Family::centerface:
      for (int i = 0; i < 4; ++i) add("m", {1, i == 0 ? 1 : i == 3 ? 10 : 2, (height + 3) / 4, (width + 3) / 4});
      break;
    case sdx::vision::Family::blazeface:
      add("r", {1, 896, 16});
      add("c", {1, 896, 1});
      break;
  }
  return out;
}

void spoil(std::vector<Made>& outputs, Bytes& bytes) {
  for (int i = bytes.below(4); i > 0 && !outputs.empty(); --i) {
    Made& m = outputs[static_cast<std::size_t>(bytes.below(static_cast<int>(outputs.size())))];
    switch (bytes.below(4)) {
      case 0: m.name = kNames[bytes.below(std::size(kNames))]; break;
      case 1: m.shape.push_back(kExtents[bytes.below(std::size(kExtents))]); break;
      case 2:
        if (!m.shape.empty())
          m.shape[static_cast<std::size_t>(bytes.below(static_cast<int>(m.shape.size())))] =
              kExtents[bytes.below(std::size(kExtents))];
        break;
      default: outputs.erase(outputs.begin() + bytes.below(static_cast<int>(outputs.size())));
    }
  }
}

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "BROKEN: %s\n", what);
  std::abort();
}

void check(const std::vector<sdx::faces::Face>& faces) {
  float before = 2;
  for (const sdx::faces::Face& f : faces) {
    require(std::isfinite(f.box.x) && std::isfinite(f.box.y) && f.box.width > 0 && f.box.height > 0, "a box without an area");
    require(f.score <= before || before == 2, "faces out of order");
    before = f.score;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  const auto families = sdx::vision::families();
  const sdx::vision::FamilyTraits& family = families[static_cast<std::size_t>(bytes.below(static_cast<int>(families.size())))];
  const int multiple = bytes.below(4) == 0 ? 1 : 32;
  const sdx::vision::InputSize input{family.family == sdx::vision::Family::blazeface ? 128 : multiple * (1 + bytes.below(4)),
                                     family.family == sdx::vision::Family::blazeface ? 128 : multiple * (1 + bytes.below(4))};
  std::vector<Made> made = usual(family.family, input.width, input.height);
  spoil(made, bytes);
  std::vector<float> stock;
  while (bytes.left() && stock.size() < 4096) stock.push_back(bytes.number());
  if (stock.empty()) stock.push_back(1);
  std::vector<sdx::vision::Output> outputs;
  std::size_t next = 0;
  for (Made& m : made) {
    std::int64_t count = 1;
    for (const std::int64_t d : m.shape) count *= d;
    if (count > 30000) return 0;
    for (std::int64_t i = 0; i < count; ++i) m.values.push_back(stock[next++ % stock.size()]);
  }
  for (const Made& m : made) outputs.push_back({m.name, m.shape, m.values});
  try {
    const auto faces =
        sdx::vision::suppress(sdx::vision::decode(family.family, outputs, input, 0.5F), family.overlap, 0.5F, family.nms, 100);
    check(faces);
    check(sdx::vision::merged({{640, 1, faces, {}}, {160, 0.25, faces, {}}}, family.nms));
  } catch (const sdx::Error& e) {
    require(e.code() != sdx::ErrorCode::internal, e.what());
  }
  return 0;
}
