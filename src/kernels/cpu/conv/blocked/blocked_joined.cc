#include "kernels/cpu/conv/blocked/blocked_joined.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/conv/blocked/blocked_layout.h"

namespace sdx::cpu {
namespace {

// Below the bound of BlockedJoinedKernels::tame() by more than the factor of Winograd's transforms.
constexpr float kWild = 0x1p90F;

// The channels of one image in groups that are joined: [blocks][plane][c], the groups one after the other.
class Apart {
 public:
  Apart(const ConvShape& s, const ApartConv& conv, const ApartRun& run) : conv_(conv), run_(run), one_(s), joined_(s.joined) {
    groups_ = s.groups;
    one_.batch = one_.groups = one_.joined = 1;
    one_.in_channels = s.in_channels / s.groups;
    one_.out_channels = s.out_channels / s.groups;
    const std::int64_t in = one_.in_channels * s.in[1] * s.in[2], out = one_.out_channels * s.out[1] * s.out[2];
    masked_.resize(static_cast<std::size_t>(in));
    result_.resize(static_cast<std::size_t>(out));
    wild_.resize(static_cast<std::size_t>(joined_));
  }

  void compute(std::int64_t image, std::int64_t group, const std::vector<LeftOutPart>& parts) {
    const std::int64_t at = image * groups_ + group;
    const auto in = static_cast<std::int64_t>(masked_.size()), out = static_cast<std::int64_t>(result_.size());
    x_ = conv_.x + at * in;
    residual_ = conv_.residual != nullptr ? conv_.residual + at * out : nullptr;
    const float* const bias = conv_.packed + groups_ * conv_.group_floats + group * one_.out_channels;
    packed_.assign(conv_.packed + group * conv_.group_floats, conv_.packed + (group + 1) * conv_.group_floats);
    packed_.insert(packed_.end(), bias, bias + one_.out_channels);
    find_wild();
    if (std::find(wild_.begin(), wild_.end(), false) != wild_.end()) compute_for(kTame, conv_.y + at * out, parts);
    for (std::int64_t g = 0; g < joined_; ++g) {
      if (wild_[static_cast<std::size_t>(g)]) compute_for(g, conv_.y + at * out, parts);
    }
  }

 private:
  static constexpr std::int64_t kTame = -1;

  std::int64_t owner(std::int64_t channel, std::int64_t channels) const { return channel / (channels / joined_); }
  // Calls fn(position, group) for each element of [blocks][plane][c].
  template <class F>
  void for_each(std::int64_t channels, std::int64_t plane, F&& fn) const {
    const std::int64_t c = channel_block();
    for (std::int64_t i = 0; i < channels * plane; ++i) fn(i, owner(i / (plane * c) * c + i % c, channels));
  }

  void find_wild() {
    std::fill(wild_.begin(), wild_.end(), false);
    for_each(one_.in_channels, one_.in[1] * one_.in[2], [&](std::int64_t i, std::int64_t g) {
      if (!(std::fabs(x_[i]) < kWild)) wild_[static_cast<std::size_t>(g)] = true;
    });
  }

  // The outputs of one wild group, or of all tame ones, from an input without the other wild ones.
  void compute_for(std::int64_t group, float* y, const std::vector<LeftOutPart>& parts) {
    const auto is_wild = [&](std::int64_t g) { return wild_[static_cast<std::size_t>(g)]; };
    for_each(one_.in_channels, one_.in[1] * one_.in[2], [&](std::int64_t i, std::int64_t g) {
      masked_[static_cast<std::size_t>(i)] = is_wild(g) && g != group ? 0.0F : x_[i];
    });
    run_(one_, masked_.data(), packed_.data(), residual_, result_.data());
    const std::int64_t c = channel_block(), plane = one_.out[1] * one_.out[2];
    for (const LeftOutPart& p : parts) {
      for (std::int64_t k = 0; k < one_.out_channels; ++k) {
        const std::int64_t g = owner(k, one_.out_channels);
        if (group == kTame ? is_wild(g) : g != group) continue;
        for (std::int64_t oy = p.y0; oy < p.y1; ++oy) {
          for (std::int64_t ox = p.x0; ox < p.x1; ++ox) {
            const std::int64_t i = (k / c * plane + oy * one_.out[2] + ox) * c + k % c;
            y[i] = result_[static_cast<std::size_t>(i)];
          }
        }
      }
    }
  }

  const ApartConv& conv_;
  const ApartRun& run_;
  ConvShape one_;  // one image and one group
  std::int64_t joined_, groups_ = 1;
  const float* x_ = nullptr;
  const float* residual_ = nullptr;
  std::vector<float> masked_, result_, packed_;
  std::vector<bool> wild_;
};

}  // namespace

void compute_left_out(const ConvShape& s, const LeftOut& left, const ApartConv& conv, const ApartRun& run) {
  std::vector<LeftOutPart> parts = left.parts();
  const auto place = [](const LeftOutPart& p) { return std::pair(p.image, p.group); };
  std::sort(parts.begin(), parts.end(), [&](const LeftOutPart& a, const LeftOutPart& b) { return place(a) < place(b); });
  Apart apart(s, conv, run);
  for (auto first = parts.begin(); first != parts.end();) {
    const auto last = std::find_if(first, parts.end(), [&](const LeftOutPart& p) { return place(p) != place(*first); });
    apart.compute(first->image, first->group, {first, last});
    first = last;
  }
}

}  // namespace sdx::cpu
