#include "tensor/npy.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cstring>
#include <string_view>

#include "base/checked.h"
#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/text/utf8.h"
#include "tensor/types.h"

namespace sdx {
namespace {

static_assert(std::endian::native == std::endian::little, "the .npy reader takes '<' data as it is");

constexpr std::string_view kMagic = "\x93NUMPY";
// numpy.load refuses headers beyond 10,000 bytes by default; structured types, the reason for longer ones, are not read.
constexpr std::size_t kMaxHeader = 1u << 16;
constexpr std::size_t kMaxRank = 64;  // NumPy 2's NPY_MAXDIMS
// Elements of zero bytes ('U0') need no data in the file, yet memory here: 32 bytes each.
constexpr std::int64_t kMaxEmptyStrings = 1 << 20;

[[noreturn]] void malformed(const std::string& why) { fail(ErrorCode::invalid_argument, "not a usable .npy file: {}", why); }

struct Header {
  std::string descr;
  bool fortran = false;
  Shape shape;
};

// The header is a Python dictionary literal: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  Header parse() {
    Header h;
    bool descr = false;
    bool order = false;
    bool shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !descr) {
        h.descr = description();
        descr = true;
      } else if (key == "fortran_order" && !order) {
        h.fortran = boolean();
        order = true;
      } else if (key == "shape" && !shape) {
        h.shape = tuple();
        shape = true;
      } else {
        malformed("unexpected or repeated header key '" + key.substr(0, 40) + "'");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!descr || !order || !shape) malformed("the header needs 'descr', 'fortran_order' and 'shape'");
    return h;
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) malformed(std::string("expected '") + c + "' at byte " + std::to_string(at_) + " of the header");
  }
  std::string quoted() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') malformed("expected a quoted string at byte " + std::to_string(at_) + " of the header");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) malformed("a string in the header does not end");
    std::string out(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return out;
  }
  std::string description() {
    skip_space();
    if (at_ < text_.size() && (text_[at_] == '[' || text_[at_] == '(')) malformed("structured element types are not supported");
    return quoted();
  }
  bool boolean() {
    skip_space();
    const std::string_view rest = text_.substr(at_);
    const bool yes = rest.starts_with("True");
    if (!yes && !rest.starts_with("False")) malformed("'fortran_order' must be True or False");
    at_ += yes ? 4 : 5;
    return yes;
  }
  Shape tuple() {
    Shape shape;
    expect('(');
    while (!accept(')')) {
      skip_space();
      std::int64_t extent = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
      if (error != std::errc{} || extent < 0) malformed("'shape' must be a tuple of integers >= 0");
      at_ = static_cast<std::size_t>(end - text_.data());
      accept('L');  // Python 2 wrote (3L, 4L)
      shape.push_back(extent);
      if (shape.size() > kMaxRank) malformed("more than " + std::to_string(kMaxRank) + " dimensions");
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return shape;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// The arrangement of the elements in the file.
struct Layout {
  DataType dtype = DataType::undefined;
  std::size_t item = 0;       // bytes an element takes in the file
  std::size_t swap_unit = 1;  // bytes to reverse at a time, where the file is big-endian
  char kind = 0;              // 'U' and 'S' for text, 'P' for bytes to be packed, 0 for plain numbers
};

DataType number_type(char kind, std::size_t size) {
  const std::string text = kind + std::to_string(size);
  return kind == '?' ? DataType::boolean : parse_data_type(text);
}

Layout opaque_layout(std::size_t size, DataType wanted, const std::string& descr) {
  const bool packed = is_sub_byte(wanted);
  if (wanted != DataType::undefined && wanted != DataType::string && (packed ? 1u : byte_size(wanted, 1)) == size) {
    return {wanted, size, 1, packed ? 'P' : '\0'};
  }
  if (size == 2) return {DataType::bfloat16, 2, 2, '\0'};
  if (size == 1) return {DataType::uint8, 1, 1, '\0'};
  malformed("element type '" + descr.substr(0, 40) + "' is unknown");
}

Layout layout_of(const std::string& descr, DataType opaque) {
  std::string_view text = descr;
  const bool big = text.starts_with('>') || text.starts_with('!');
  if (!text.empty() && std::string_view("<>=|!").find(text[0]) != std::string_view::npos) text.remove_prefix(1);
  if (text.empty()) malformed("the element type is empty");
  const char kind = text[0];
  std::size_t size = 0;
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), size);
  if (kind == '?' && text.size() == 1) {
    size = 1;
  } else if (kind == 'O') {
    malformed("it contains pickled Python objects, which are not supported");
  } else if (error != std::errc{} || end != text.data() + text.size() || size > (1u << 28)) {
    malformed("element type '" + descr.substr(0, 40) + "' is unknown");
  }
  if (kind == 'U') return {DataType::string, size * 4, big ? 4u : 1u, 'U'};
  if (kind == 'S' || kind == 'a') return {DataType::string, size, 1, 'S'};
  Layout l;
  if (kind == 'V' || (kind == 'f' && size == 1)) {
    l = opaque_layout(size, opaque, descr);
  } else if (std::string_view("iufcb?").find(kind) != std::string_view::npos) {
    l = {number_type(kind, size), size, size, '\0'};
    if (l.dtype == DataType::undefined) malformed("element type '" + descr.substr(0, 40) + "' is not supported");
    if (kind == 'c') l.swap_unit = size / 2;
  } else {
    malformed("element type '" + descr.substr(0, 40) + "' is not supported");
  }
  if (!big) l.swap_unit = 1;
  return l;
}

// Calls visit(position in the file) for each element in row-major order.
template <class F>
void each_in_row_major(const Shape& shape, bool fortran, std::int64_t count, F&& visit) {
  if (!fortran || shape.size() < 2) {
    for (std::int64_t i = 0; i < count; ++i) visit(i);
    return;
  }
  std::vector<std::int64_t> stride(shape.size(), 1);
  for (std::size_t a = 1; a < shape.size(); ++a) stride[a] = count == 0 ? 0 : stride[a - 1] * shape[a - 1];
  std::vector<std::int64_t> index(shape.size(), 0);
  std::int64_t position = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    visit(position);
    for (std::size_t a = shape.size(); a-- > 0;) {
      position += stride[a];
      if (++index[a] < shape[a]) break;
      position -= stride[a] * shape[a];
      index[a] = 0;
    }
  }
}

std::string text_from_utf32(const std::byte* data, std::size_t units, bool big) {
  std::string out;
  std::size_t length = units;
  const auto unit = [&](std::size_t i) {
    std::uint32_t code = 0;
    std::memcpy(&code, data + i * 4, 4);
    return big ? __builtin_bswap32(code) : code;
  };
  while (length > 0 && unit(length - 1) == 0) --length;
  for (std::size_t i = 0; i < length; ++i) {
    if (!is_code_point(unit(i))) malformed("a string contains an invalid code point");
    append_utf8(out, unit(i));
  }
  return out;
}

std::string text_from_bytes(const std::byte* data, std::size_t size) {
  while (size > 0 && data[size - 1] == std::byte{0}) --size;
  return {reinterpret_cast<const char*>(data), size};
}

Tensor read_text(const std::byte* data, const Layout& l, const Header& h, std::int64_t count) {
  if (l.item == 0 && count > kMaxEmptyStrings) malformed(std::to_string(count) + " strings of no bytes");
  Tensor out(DataType::string, h.shape);
  std::string* to = out.mutable_values<std::string>().data();
  each_in_row_major(h.shape, h.fortran, count, [&](std::int64_t position) {
    const std::byte* from = data + static_cast<std::size_t>(position) * l.item;
    *to++ = l.kind == 'U' ? text_from_utf32(from, l.item / 4, l.swap_unit == 4) : text_from_bytes(from, l.item);
  });
  return out;
}

Tensor read_packed(const std::byte* data, const Layout& l, const Header& h, std::int64_t count) {
  Tensor out(l.dtype, h.shape);
  const int bits = bit_width(l.dtype);
  std::memset(out.mutable_data(), 0, out.bytes());
  std::int64_t i = 0;
  each_in_row_major(h.shape, h.fortran, count, [&](std::int64_t position) {
    const auto code = static_cast<std::uint8_t>(data[position]);
    set_packed(out.mutable_data(), bits, i++, static_cast<std::uint8_t>(code & ((1 << bits) - 1)));
  });
  return out;
}

Tensor read_converted(const std::byte* data, const Layout& l, const Header& h, std::int64_t count) {
  Tensor out(l.dtype, h.shape);
  auto* to = static_cast<std::byte*>(out.mutable_data());
  each_in_row_major(h.shape, h.fortran, count, [&](std::int64_t position) {
    const std::byte* from = data + static_cast<std::size_t>(position) * l.item;
    for (std::size_t unit = 0; unit < l.item; unit += l.swap_unit) {
      if (l.swap_unit == 1) {
        std::memcpy(to, from, l.item);
        break;
      }
      for (std::size_t b = 0; b < l.swap_unit; ++b) to[unit + b] = from[unit + l.swap_unit - 1 - b];
    }
    if (l.dtype == DataType::boolean && *to != std::byte{0}) *to = std::byte{1};
    to += l.item;
  });
  return out;
}

Header read_header(std::span<const std::byte> bytes, std::size_t& data_offset) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic) || text.size() < 10) malformed("it does not begin with a .npy header");
  const int major = static_cast<unsigned char>(text[6]);
  if (major < 1 || major > 3) malformed("format version " + std::to_string(major) + " is unknown; 1 to 3 are read");
  const std::size_t start = major == 1 ? 10 : 12;
  if (text.size() < start) malformed("it ends within the header");
  std::size_t length = 0;
  for (std::size_t i = start; i-- > 8;) length = length << 8 | static_cast<unsigned char>(text[i]);
  if (length > kMaxHeader) malformed("the header claims " + std::to_string(length) + " bytes");
  if (length > text.size() - start) malformed("it ends within the header");
  data_offset = start + length;
  return HeaderParser(text.substr(start, length)).parse();
}

bool all_zero_or_one(const std::byte* data, std::int64_t count) {
  return std::all_of(data, data + count, [](std::byte b) { return b <= std::byte{1}; });
}

}  // namespace

// Exported for the command, which reads an array from standard input.
SDX_TOOLS_API Tensor parse_npy(std::span<const std::byte> bytes, std::shared_ptr<const void> owner, DataType opaque) {
  std::size_t offset = 0;
  const Header header = read_header(bytes, offset);
  const Layout layout = layout_of(header.descr, opaque);
  const std::int64_t count = element_count(header.shape);
  const auto needed = checked_mul(count, static_cast<std::int64_t>(layout.item));
  const std::size_t available = bytes.size() - offset;
  if (!needed || static_cast<std::size_t>(*needed) > available) {
    malformed("the header promises " + std::to_string(count) + " elements of " + std::to_string(layout.item) + " bytes, only " +
              std::to_string(available) + " bytes follow");
  }
  const std::byte* data = bytes.data() + offset;
  if (layout.kind == 'P') return read_packed(data, layout, header, count);
  if (layout.kind != 0) return read_text(data, layout, header, count);
  const bool reorder = header.fortran && header.shape.size() > 1;
  const bool bad_bools = layout.dtype == DataType::boolean && !all_zero_or_one(data, count);
  if (layout.swap_unit > 1 || reorder || bad_bools) return read_converted(data, layout, header, count);
  return Tensor::view(data, layout.dtype, header.shape, std::move(owner));
}

Tensor read_npy(const std::filesystem::path& path, DataType opaque) {
  const auto file = MappedFile::open(path);
  try {
    return parse_npy(file->bytes(), file, opaque);
  } catch (Error& e) {
    e.add_context("in file '" + path.string() + "'");
    throw;
  }
}

}  // namespace sdx
