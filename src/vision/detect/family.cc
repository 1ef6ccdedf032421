#include "vision/detect/family.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"

namespace sdx::vision {
namespace {

constexpr std::array<FamilyTraits, 7> kFamilies{{
    {.family = Family::yunet,
     .name = "yunet",
     .input = {.bgr = true},
     .overlap = Overlap::truncated,
     .close_ups_need_small_looks = true,
     .any_extents = true,
     .outputs = "cls_8, cls_16, cls_32, obj_*, bbox_*, kps_*"},
    {.family = Family::yunet2022,
     .name = "yunet2022",
     .input = {.bgr = true},
     .overlap = Overlap::truncated,
     .close_ups_need_small_looks = true,
     .any_extents = true,
     .outputs = "loc [N,14], conf [N,2], iou [N,1]"},
    {.family = Family::scrfd,
     .name = "scrfd",
     .input = {.mean = {127.5F, 127.5F, 127.5F}, .scale = 1 / 128.0F},
     .nms = 0.4F,
     .overlap = Overlap::plus_one,
     .outputs = "3 or 5 each of [N,1] and [N,4], or of [N,1], [N,4] and [N,10]"},
    {.family = Family::retinaface,
     .name = "retinaface",
     .input = {.bgr = true, .mean = {104, 117, 123}},
     .smallest_face = 16,
     .outputs = "[1,N,4], [1,N,2], [1,N,10]"},
    {.family = Family::ultraface,
     .name = "ultraface",
     .input = {.mean = {127, 127, 127}, .scale = 1 / 128.0F, .multiple = 1, .width = 320, .height = 240, .squash = true},
     .nms = 0.5F,
     .outputs = "scores [1,N,2], boxes [1,N,4]"},
    {.family = Family::centerface,
     .name = "centerface",
     .overlap = Overlap::or_equal,
     .any_extents = true,
     .outputs = "[1,1,h,w], [1,2,h,w], [1,2,h,w], [1,10,h,w]"},
    {.family = Family::blazeface,
     .name = "blazeface",
     .input = {.mean = {127.5F, 127.5F, 127.5F}, .scale = 1 / 127.5F, .multiple = 1, .width = 128, .height = 128},
     .overlap = Overlap::weighted,
     .smallest_face = 20,
     .outputs = "[1,896,16], [1,896,1], or each in two parts of 512 and 384"},
}};

bool has(std::span<const ValueSpec> outputs, std::string_view name) {
  return std::any_of(outputs.begin(), outputs.end(), [&](const ValueSpec& s) { return s.name == name; });
}

bool has_all(std::span<const ValueSpec> outputs, std::initializer_list<std::string_view> names) {
  return std::all_of(names.begin(), names.end(), [&](std::string_view name) { return has(outputs, name); });
}

// The number of outputs with each last extent; 0: unknown.
std::map<std::int64_t, int> last_extents(std::span<const ValueSpec> outputs) {
  std::map<std::int64_t, int> counts;
  for (const ValueSpec& s : outputs) ++counts[s.has_shape && !s.shape.empty() ? std::max<std::int64_t>(s.shape.back(), 0) : 0];
  return counts;
}

bool is_centerface(std::span<const ValueSpec> outputs) {
  if (outputs.size() != 4) return false;
  if (has_all(outputs, {"537", "538", "539", "540"})) return true;
  std::map<std::int64_t, int> channels;
  for (const ValueSpec& s : outputs) {
    if (!s.has_shape || s.shape.size() != 4) return false;
    ++channels[s.shape[1]];
  }
  return channels == std::map<std::int64_t, int>{{1, 1}, {2, 2}, {10, 1}};
}

bool has_yunet_names(std::span<const ValueSpec> outputs) {
  for (const char* kind : {"cls", "obj", "bbox", "kps"}) {
    for (const int stride : {8, 16, 32}) {
      if (!has(outputs, fmt::format("{}_{}", kind, stride))) return false;
    }
  }
  return true;
}

bool has_scrfd_names(std::span<const ValueSpec> outputs) {
  const std::size_t n = outputs.size();
  const bool count = n == 6 || n == 9 || n == 10 || n == 15;
  return count && has_all(outputs, {"score_8", "score_16", "score_32", "bbox_8", "bbox_16", "bbox_32"});
}

}  // namespace

std::span<const FamilyTraits> families() { return kFamilies; }

const FamilyTraits& traits(Family family) {
  for (const FamilyTraits& t : kFamilies) {
    if (t.family == family) return t;
  }
  fail(ErrorCode::internal, "a family of detectors without traits");
}

const FamilyTraits& family_named(std::string_view name) {
  for (const FamilyTraits& t : kFamilies) {
    if (t.name == name) return t;
  }
  fail(ErrorCode::invalid_argument, "there is no decoder '{}' for face detectors; known: {}", name, known_families());
}

std::optional<Family> recognise(std::span<const ValueSpec> outputs) {
  for (const ValueSpec& s : outputs) {
    if (!s.is_tensor) return std::nullopt;
  }
  if (has_yunet_names(outputs)) return Family::yunet;
  if (has_scrfd_names(outputs)) return Family::scrfd;
  if (outputs.size() == 3 && has_all(outputs, {"loc", "conf", "iou"})) return Family::yunet2022;
  if (outputs.size() == 3 && has_all(outputs, {"loc", "conf", "landms"})) return Family::retinaface;
  if (is_centerface(outputs)) return Family::centerface;
  using Counts = std::map<std::int64_t, int>;
  const Counts counts = last_extents(outputs);
  if (counts == Counts{{1, 6}, {4, 3}, {10, 3}}) return Family::yunet;
  if (counts == Counts{{1, 1}, {2, 1}, {14, 1}}) return Family::yunet2022;
  for (const int levels : {3, 5}) {
    if (counts == Counts{{1, levels}, {4, levels}} || counts == Counts{{1, levels}, {4, levels}, {10, levels}}) {
      return Family::scrfd;
    }
  }
  if (counts == Counts{{2, 1}, {4, 1}, {10, 1}}) return Family::retinaface;
  if (counts == Counts{{2, 1}, {4, 1}} || (outputs.size() == 2 && has_all(outputs, {"scores", "boxes"})))
    return Family::ultraface;
  if (counts == Counts{{1, 1}, {16, 1}} || counts == Counts{{1, 2}, {16, 2}}) return Family::blazeface;
  return std::nullopt;
}

const ValueSpec& picture_input(std::span<const ValueSpec> inputs) {
  const ValueSpec* found = nullptr;
  for (const ValueSpec& s : inputs) {
    if (s.has_default) continue;
    const bool floats = s.is_tensor && (s.dtype == DataType::float32 || s.dtype == DataType::float16);
    const bool rank = !s.has_shape || s.shape.size() == 4;
    const auto three = [&](std::size_t axis) { return s.shape[axis] == 3 || s.shape[axis] < 0; };
    if (found == nullptr && floats && rank && (!s.has_shape || three(1) || three(3))) {
      found = &s;
      continue;
    }
    found = nullptr;
    break;
  }
  if (found != nullptr) return *found;
  fail(ErrorCode::invalid_argument,
       "the model takes no picture: a face detector has one input, float32 or float16 [1,3,height,width] or "
       "[1,height,width,3]; this one has:{}",
       listed(inputs));
}

std::string listed(std::span<const ValueSpec> specs) {
  constexpr std::size_t kShown = 20;
  std::string out;
  for (std::size_t i = 0; i < std::min(specs.size(), kShown); ++i)
    out += fmt::format("\n    {}: {}", specs[i].name, specs[i].type);
  if (specs.size() > kShown) out += fmt::format("\n    and {} more", specs.size() - kShown);
  return out.empty() ? " none" : out;
}

std::string known_families() {
  std::string out;
  for (const FamilyTraits& t : kFamilies) out += fmt::format("{}{} ({})", out.empty() ? "" : ", ", t.name, t.outputs);
  return out;
}

}  // namespace sdx::vision
