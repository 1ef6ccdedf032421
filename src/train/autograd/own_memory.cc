#include "train/autograd/own_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace sdx::train {
namespace {

struct Place {
  std::uintptr_t begin = 0, end = 0;
};

Place place_of(const Tensor& t) {
  if (!t.defined()) return {};
  const auto begin = reinterpret_cast<std::uintptr_t>(t.data());
  return {begin, begin + t.bytes()};
}

bool is_empty(const Place& p) { return p.begin == p.end; }

// Places in order. Steps of training ask for thousands of tensors, so that no pair of them may be looked at.
class Places {
 public:
  void add(std::span<const Tensor> tensors) {
    for (const Tensor& t : tensors) {
      if (const Place p = place_of(t); !is_empty(p)) places_.push_back(p);
    }
  }
  // After the last add().
  void sort() {
    std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) { return a.begin < b.begin; });
    std::uintptr_t furthest = 0;
    for (Place& p : places_) p.end = furthest = std::max(furthest, p.end);
  }
  bool meet(const Tensor& t) const {
    const Place p = place_of(t);
    if (is_empty(p)) return false;
    const auto behind =
        std::lower_bound(places_.begin(), places_.end(), p.end, [](const Place& a, std::uintptr_t end) { return a.begin < end; });
    return behind != places_.begin() && std::prev(behind)->end > p.begin;
  }

 private:
  std::vector<Place> places_;  // when sorted: by begin, with the furthest end so far
};

}  // namespace

void own_memory(std::vector<Tensor>& tensors, std::span<const std::span<const Tensor>> others) {
  Places foreign;
  for (const auto& list : others) foreign.add(list);
  foreign.sort();
  std::vector<std::pair<Place, Tensor*>> own;
  for (Tensor& t : tensors) {
    if (foreign.meet(t)) {
      t = t.clone();
    } else if (const Place p = place_of(t); !is_empty(p)) {
      own.emplace_back(p, &t);
    }
  }
  std::stable_sort(own.begin(), own.end(), [](const auto& a, const auto& b) { return a.first.begin < b.first.begin; });
  std::uintptr_t furthest = 0;
  for (const auto& [place, t] : own) {
    if (place.begin < furthest) *t = t->clone();
    furthest = std::max(furthest, place.end);
  }
}

std::vector<std::size_t> with_shared(std::vector<std::size_t> known, std::span<const Tensor> tensors,
                                     std::span<const Tensor> kept) {
  Places places;
  places.add(kept);
  places.sort();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const bool there = std::find(known.begin(), known.end(), i) != known.end();
    if (!there && places.meet(tensors[i])) known.push_back(i);
  }
  return known;
}

}  // namespace sdx::train
