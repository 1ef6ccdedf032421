#pragma once
// A sequence that grows at its end and whose elements never move.

#include <bit>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace sdx {

// References to elements stay valid while the sequence grows or is moved; only assigning to it or destroying it ends them.
// Elements lie in pieces of 8, 16, 32, … , so that growing copies nothing and a few elements take little memory.
template <class T>
class StableVector {
  // Walks the elements that existed when it was made, even while the sequence grows.
  template <class Owner, class Element>
  class Cursor {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = Element*;
    using reference = Element&;

    Cursor() = default;
    Cursor(Owner* owner, std::size_t piece) : owner_(owner), piece_(piece) { enter(); }
    Cursor(Owner* owner, Element* end) : owner_(owner), at_(end), stop_(end) {}
    reference operator*() const { return *at_; }
    pointer operator->() const { return at_; }
    Cursor& operator++() {
      if (++at_ == stop_ && piece_ + 1 < pieces_) {
        ++piece_;
        enter();
      }
      return *this;
    }
    Cursor operator++(int) {
      const Cursor before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Cursor& other) const { return at_ == other.at_; }

   private:
    void enter() {
      if (pieces_ == 0) pieces_ = owner_->pieces_.size();
      if (piece_ >= pieces_) return;
      auto& piece = owner_->pieces_[piece_];
      at_ = piece.data();
      stop_ = at_ + piece.size();
    }

    Owner* owner_ = nullptr;
    Element* at_ = nullptr;
    Element* stop_ = nullptr;
    std::size_t piece_ = 0, pieces_ = 0;
  };

 public:
  using value_type = T;
  using iterator = Cursor<StableVector, T>;
  using const_iterator = Cursor<const StableVector, const T>;

  StableVector() = default;
  StableVector(const StableVector& other) {
    for (const T& element : other) push_back(element);
  }
  StableVector(StableVector&& other) noexcept : pieces_(std::exchange(other.pieces_, {})) {}
  StableVector& operator=(const StableVector& other) {
    if (this != &other) *this = StableVector(other);
    return *this;
  }
  StableVector& operator=(StableVector&& other) noexcept {
    pieces_ = std::exchange(other.pieces_, {});
    return *this;
  }
  ~StableVector() = default;

  void push_back(T element) {
    if (pieces_.empty() || pieces_.back().size() == length_of(pieces_.size() - 1)) {
      std::vector<T> piece;
      piece.reserve(length_of(pieces_.size()));
      pieces_.push_back(std::move(piece));
    }
    pieces_.back().push_back(std::move(element));
  }

  bool empty() const { return pieces_.empty(); }
  std::size_t size() const { return pieces_.empty() ? 0 : first_of(pieces_.size() - 1) + pieces_.back().size(); }
  T& operator[](std::size_t i) { return pieces_[piece_of(i)][i - first_of(piece_of(i))]; }
  const T& operator[](std::size_t i) const { return pieces_[piece_of(i)][i - first_of(piece_of(i))]; }
  // Throws std::out_of_range.
  T& at(std::size_t i) { return pieces_.at(piece_of(i)).at(i - first_of(piece_of(i))); }
  const T& at(std::size_t i) const { return pieces_.at(piece_of(i)).at(i - first_of(piece_of(i))); }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return pieces_.back().back(); }
  const T& back() const { return pieces_.back().back(); }

  iterator begin() { return {this, std::size_t{0}}; }
  iterator end() { return {this, pieces_.empty() ? nullptr : pieces_.back().data() + pieces_.back().size()}; }
  const_iterator begin() const { return {this, std::size_t{0}}; }
  const_iterator end() const { return {this, pieces_.empty() ? nullptr : pieces_.back().data() + pieces_.back().size()}; }

 private:
  static constexpr std::size_t kFirst = 8;
  static std::size_t piece_of(std::size_t i) { return static_cast<std::size_t>(std::bit_width(i / kFirst + 1)) - 1; }
  static std::size_t length_of(std::size_t piece) { return kFirst << piece; }
  static std::size_t first_of(std::size_t piece) { return length_of(piece) - kFirst; }

  std::vector<std::vector<T>> pieces_;  // each with room for its length from the start; none is empty
};

}  // namespace sdx
