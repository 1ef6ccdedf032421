#include "media/metadata/exif.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

namespace sdx::media {
namespace {

constexpr unsigned kOrientation = 0x0112, kExif = 0x8769, kGps = 0x8825, kInterop = 0xA005, kMakerNote = 0x927C;
constexpr unsigned kShort = 3, kLong = 4, kRational = 5;

struct Entry {
  std::size_t at = 0;  // of its 12 bytes
  unsigned tag = 0, type = 0;
  std::uint64_t count = 0;
  std::size_t value = 0, bytes = 0;  // where its value lies; no bytes: outside, or of an unknown type
};

struct Directory {
  std::size_t at = 0;
  std::vector<Entry> entries;
  std::size_t next = 0;  // 0: the last
  std::size_t end = 0;   // behind its table

  const Entry* find(unsigned tag) const {
    const auto found = std::find_if(entries.begin(), entries.end(), [tag](const Entry& e) { return e.tag == tag; });
    return found == entries.end() ? nullptr : &*found;
  }
};

// Numbers out of a TIFF structure: 0 where it ends before.
class View {
 public:
  explicit View(std::string_view bytes) : bytes_(bytes), big_(bytes.starts_with("MM")) {}

  bool valid() const { return bytes_.size() >= 14 && (big_ || bytes_.starts_with("II")) && number(2, 2) == 42; }
  bool big() const { return big_; }
  std::string_view bytes() const { return bytes_; }
  bool holds(std::uint64_t at, std::uint64_t size) const { return at <= bytes_.size() && size <= bytes_.size() - at; }

  std::uint32_t number(std::uint64_t at, std::size_t width) const {
    if (!holds(at, width)) return 0;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < width; ++i) {
      value = value << 8 | static_cast<unsigned char>(bytes_[at + (big_ ? i : width - 1 - i)]);
    }
    return value;
  }

  // The first number of an entry; empty for other types than whole numbers.
  std::optional<std::uint32_t> first(const Entry& e) const {
    if (e.bytes == 0 || (e.type != kShort && e.type != kLong && e.type != 13)) return std::nullopt;
    return number(e.value, e.type == kShort ? 2 : 4);
  }
  double rational(const Entry& e) const {
    if (e.bytes < 8 || e.type != kRational) return 0;
    const std::uint32_t below = number(e.value + 4, 4);
    return below == 0 ? 0 : static_cast<double>(number(e.value, 4)) / below;
  }

  // Empty where it is not whole.
  std::optional<Directory> directory(std::size_t at) const {
    constexpr std::size_t kSizes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4};
    Directory d;
    d.at = at;
    if (at < 8 || !holds(at, 2)) return std::nullopt;
    const std::size_t count = number(at, 2);
    d.end = at + 2 + count * 12;
    if (!holds(at + 2, count * 12)) return std::nullopt;
    if (holds(d.end, 4)) {
      d.next = number(d.end, 4);
      d.end += 4;
    }
    for (std::size_t i = 0; i < count; ++i) {
      Entry e;
      e.at = at + 2 + i * 12;
      e.tag = number(e.at, 2);
      e.type = number(e.at + 2, 2);
      e.count = number(e.at + 4, 4);
      const std::uint64_t size = e.type < std::size(kSizes) ? e.count * kSizes[e.type] : 0;
      e.value = size <= 4 ? e.at + 8 : number(e.at + 8, 4);
      e.bytes = size > 0 && holds(e.value, size) ? static_cast<std::size_t>(size) : 0;
      d.entries.push_back(e);
    }
    return d;
  }
  std::optional<Directory> main() const { return valid() ? directory(number(4, 4)) : std::nullopt; }
  std::optional<Directory> child(const Directory& d, unsigned tag) const {
    const Entry* pointer = d.find(tag);
    const auto at = pointer == nullptr ? std::nullopt : first(*pointer);
    return at ? directory(*at) : std::nullopt;
  }

 private:
  std::string_view bytes_;
  bool big_;
};

void put(std::string& bytes, bool big, std::size_t at, std::size_t width, std::uint32_t value) {
  if (at > bytes.size() || width > bytes.size() - at) return;
  for (std::size_t i = 0; i < width; ++i) {
    bytes[at + (big ? width - 1 - i : i)] = static_cast<char>(value >> (8 * i));
  }
}

void put_number(std::string& bytes, bool big, const Entry* entry, std::uint32_t value) {
  if (entry == nullptr) return;
  put(bytes, big, entry->at + 2, 2, kLong);
  put(bytes, big, entry->at + 4, 4, 1);
  put(bytes, big, entry->at + 8, 4, value);
}

void put_short(std::string& bytes, bool big, const Entry* entry, std::uint32_t value) {
  if (entry == nullptr) return;
  put(bytes, big, entry->at + 2, 2, kShort);
  put(bytes, big, entry->at + 4, 4, 1);
  put(bytes, big, entry->at + 8, 4, 0);
  put(bytes, big, entry->at + 8, 2, value);
}

void put_dpi(std::string& bytes, const View& view, const Directory& d, double dpi) {
  for (const unsigned tag : {0x011AU, 0x011BU}) {
    const Entry* e = d.find(tag);
    if (e == nullptr || e->type != kRational || e->bytes < 8) continue;
    put(bytes, view.big(), e->value, 4, static_cast<std::uint32_t>(std::lround(dpi * 100)));
    put(bytes, view.big(), e->value + 4, 4, 100);
  }
  put_short(bytes, view.big(), d.find(0x0128), 2);
}

// Finds the pixels of a thumbnail; false if they are in more pieces than a thumbnail has.
bool thumbnail_parts(const View& view, const Directory& d, std::vector<std::pair<std::size_t, std::size_t>>& parts) {
  constexpr std::uint64_t kMost = 64;
  const auto add = [&](const Entry* where, const Entry* sizes) {
    if (where == nullptr || sizes == nullptr || where->bytes == 0 || sizes->bytes == 0) return true;
    const auto width = [](const Entry& e) { return e.type == kShort ? 2U : 4U; };
    const std::uint64_t count = std::min(where->count, sizes->count);
    if (count > kMost) return false;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::size_t at = view.number(where->value + i * width(*where), width(*where));
      const std::size_t size = view.number(sizes->value + i * width(*sizes), width(*sizes));
      if (size > 0 && at < view.bytes().size()) parts.emplace_back(at, std::min(size, view.bytes().size() - at));
    }
    return true;
  };
  return add(d.find(0x0201), d.find(0x0202)) && add(d.find(0x0111), d.find(0x0117));
}

// Unlinks and blanks what follows the main directory: thumbnails. False where that cannot be told.
bool drop_thumbnails(std::string& bytes, std::size_t& first_blank) {
  const View view(bytes);
  const auto root = view.main();
  if (!root) return false;
  std::vector<std::pair<std::size_t, std::size_t>> parts;
  std::size_t next = root->next;
  for (int i = 0; next != 0 && i < 8; ++i) {
    const auto d = view.directory(next);
    if (!d) break;
    if (!thumbnail_parts(view, *d, parts)) return false;
    parts.emplace_back(d->at, d->end - d->at);
    next = d->next;
  }
  for (const auto& [at, size] : parts) {
    const bool apart = at >= 8 && (at >= root->end || at + size <= root->at);
    if (!apart) return false;
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), size, '\0');
    first_blank = std::min(first_blank, at);
  }
  if (root->next != 0) put(bytes, view.big(), root->end - 4, 4, 0);
  return true;
}

// Takes entries out of a directory: those behind them move up, their values stay where they are. `tags`: ascending or not.
void drop_entries(std::string& bytes, const View& view, const Directory& d, std::initializer_list<unsigned> tags) {
  std::size_t to = d.at + 2, kept = 0;
  for (const Entry& e : d.entries) {
    if (std::find(tags.begin(), tags.end(), e.tag) != tags.end()) continue;
    bytes.replace(to, 12, view.bytes().substr(e.at, 12));
    to += 12;
    ++kept;
  }
  if (kept == d.entries.size()) return;
  const std::size_t behind = d.at + 2 + d.entries.size() * 12;
  std::string rest(view.bytes().substr(behind, d.end - behind));  // the next directory's place
  rest.resize(d.end - to, '\0');
  bytes.replace(to, rest.size(), rest);
  put(bytes, view.big(), d.at, 2, static_cast<std::uint32_t>(kept));
}

// SubjectArea and SubjectLocation, which TIFF/EP has in the main directory.
void drop_places(std::string& bytes) {
  for (const bool main : {true, false}) {
    const std::string before = bytes;
    const View view(before);
    const auto root = view.main();
    const auto d = root && !main ? view.child(*root, kExif) : root;
    if (d) drop_entries(bytes, view, *d, {0x9214, 0xA214});
  }
}

// The end of the bytes that directories refer to.
std::size_t used_end(const View& view, const Directory& root) {
  std::size_t end = root.end;
  const auto count = [&end](const Directory& d) {
    end = std::max(end, d.end);
    for (const Entry& e : d.entries) end = std::max(end, e.value + e.bytes);
  };
  count(root);
  if (const auto exif = view.child(root, kExif)) {
    count(*exif);
    if (const auto interop = view.child(*exif, kInterop)) count(*interop);
  }
  if (const auto gps = view.child(root, kGps)) count(*gps);
  return end;
}

// The directory's bytes for a place at offset `start` of another file of the same byte order.
std::string copied(const View& view, const Directory& d, std::size_t start) {
  std::vector<Entry> kept;
  for (const Entry& e : d.entries) {
    if (e.bytes > 0 && e.tag != kMakerNote && e.tag != kInterop) kept.push_back(e);
  }
  std::string out(2 + kept.size() * 12 + 4, '\0');
  put(out, view.big(), 0, 2, static_cast<std::uint32_t>(kept.size()));
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const Entry& e = kept[i];
    const std::size_t at = 2 + i * 12;
    out.replace(at, 12, view.bytes().substr(e.at, 12));
    if (e.bytes <= 4) continue;
    put(out, view.big(), at + 8, 4, static_cast<std::uint32_t>(start + out.size()));
    out += view.bytes().substr(e.value, e.bytes);
    if (out.size() % 2 != 0) out += '\0';
  }
  return out;
}

}  // namespace

ExifFacts read_exif(std::string_view exif) {
  ExifFacts facts;
  const View view(exif);
  const auto root = view.main();
  if (!root) return facts;
  if (const Entry* e = root->find(kOrientation)) {
    const auto value = view.first(*e).value_or(1);
    if (value >= 1 && value <= 8) facts.orientation = static_cast<int>(value);
  }
  if (const Entry* e = root->find(0x011A)) {
    const Entry* unit = root->find(0x0128);
    const auto kind = unit == nullptr ? 2 : view.first(*unit).value_or(2);
    facts.dpi = kind == 2 ? view.rational(*e) : kind == 3 ? view.rational(*e) * 2.54 : 0;
  }
  return facts;
}

std::string upright_exif(std::string_view exif, int width, int height, double dpi, bool moved) {
  std::string bytes(exif);
  std::size_t first_blank = bytes.size();
  if (!drop_thumbnails(bytes, first_blank)) return "";
  if (moved) drop_places(bytes);
  const std::string before = bytes;
  const View view(before);
  const auto root = view.main();
  if (!root) return "";
  const bool big = view.big();
  put_short(bytes, big, root->find(kOrientation), 1);
  put_number(bytes, big, root->find(0x0100), static_cast<std::uint32_t>(width));
  put_number(bytes, big, root->find(0x0101), static_cast<std::uint32_t>(height));
  if (dpi > 0) put_dpi(bytes, view, *root, dpi);
  if (const auto child = view.child(*root, kExif)) {
    put_number(bytes, big, child->find(0xA002), static_cast<std::uint32_t>(width));
    put_number(bytes, big, child->find(0xA003), static_cast<std::uint32_t>(height));
  }
  // Thumbnails mostly come last.
  const std::size_t end = used_end(view, *root);
  if (first_blank >= end) bytes.resize(end);
  return bytes;
}

std::string exif_text(std::string_view exif, unsigned tag) {
  const View view(exif);
  const auto root = view.main();
  const Entry* e = root ? root->find(tag) : nullptr;
  if (e == nullptr || e->type != 2 || e->bytes == 0) return "";
  const std::string_view text = exif.substr(e->value, e->bytes);
  return std::string(text.substr(0, text.find('\0')));
}

bool exif_is_big_endian(std::string_view exif) { return View(exif).big(); }

bool exif_has_directory(std::string_view exif, unsigned tag) {
  const View view(exif);
  const auto root = view.main();
  return root && view.child(*root, tag);
}

void append_exif(std::string& tiff, std::string_view exif) {
  const View view(exif);
  const auto root = view.main();
  if (!root) return;
  for (const unsigned tag : {kExif, kGps}) {
    const auto child = view.child(*root, tag);
    const auto file = View(tiff).main();
    const Entry* pointer = child && file ? file->find(tag) : nullptr;
    if (pointer == nullptr) continue;
    const std::size_t slot = pointer->at + 8;
    if (tiff.size() % 2 != 0) tiff += '\0';
    put(tiff, view.big(), slot, 4, static_cast<std::uint32_t>(tiff.size()));
    tiff += copied(view, *child, tiff.size());
  }
}

std::string exif_of_tiff(std::string_view tiff) {
  constexpr unsigned kKept[] = {0x010E, 0x010F, 0x0110, 0x0112, 0x011A, 0x011B, 0x0128,
                                0x0131, 0x0132, 0x013B, 0x8298, kExif,  kGps};
  const View view(tiff);
  auto root = view.main();
  if (!root) return "";
  std::erase_if(root->entries,
                [&](const Entry& e) { return std::find(std::begin(kKept), std::end(kKept), e.tag) == std::end(kKept); });
  const bool resolution_alone = std::all_of(root->entries.begin(), root->entries.end(), [](const Entry& e) {
    return e.tag == 0x0112 || e.tag == 0x011A || e.tag == 0x011B || e.tag == 0x0128;
  });
  if (resolution_alone) return "";
  std::string out(tiff.substr(0, 8));
  put(out, view.big(), 4, 4, 8);
  out += copied(view, *root, 8);
  append_exif(out, tiff);
  return out;
}

}  // namespace sdx::media
