#pragma once
// Creates arrays from shapes and numbers, and describes element types. Nothing is computed or allocated until elements are
// requested. Names, arguments and defaults are those of mlx.core.

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <sdx/array/array.hpp>

namespace sdx::array {

// Broadcasts `vals` to the shape; keeps their element type if none is given.
SDX_API array full(const Shape& shape, const array& vals, std::optional<Dtype> dtype = std::nullopt, StreamOrDevice s = {});
SDX_API array zeros(const Shape& shape, Dtype dtype = Dtype::float32, StreamOrDevice s = {});
SDX_API array ones(const Shape& shape, Dtype dtype = Dtype::float32, StreamOrDevice s = {});
SDX_API array full_like(const array& a, const array& vals, std::optional<Dtype> dtype = std::nullopt, StreamOrDevice s = {});
SDX_API array zeros_like(const array& a, std::optional<Dtype> dtype = std::nullopt, StreamOrDevice s = {});
SDX_API array ones_like(const array& a, std::optional<Dtype> dtype = std::nullopt, StreamOrDevice s = {});

// start, start + step, … before stop.
SDX_API array arange(double start, double stop, double step, Dtype dtype, StreamOrDevice s = {});
inline array arange(double start, double stop, Dtype dtype = Dtype::float32, StreamOrDevice s = {}) {
  return arange(start, stop, 1, dtype, s);
}
inline array arange(double stop, Dtype dtype = Dtype::float32, StreamOrDevice s = {}) { return arange(0, stop, 1, dtype, s); }
inline array arange(int start, int stop, int step = 1, StreamOrDevice s = {}) {
  return arange(start, stop, step, Dtype::int32, s);
}
inline array arange(int stop, StreamOrDevice s = {}) { return arange(0, stop, 1, Dtype::int32, s); }
// Returns `num` evenly spaced numbers from start to stop; without `endpoint`, stop is excluded.
SDX_API array linspace(double start, double stop, int num = 50, Dtype dtype = Dtype::float32, bool endpoint = true,
                       StreamOrDevice s = {});

// Ones on the k-th diagonal. m defaults to n.
SDX_API array eye(int n, std::optional<int> m = std::nullopt, int k = 0, Dtype dtype = Dtype::float32, StreamOrDevice s = {});
SDX_API array identity(int n, Dtype dtype = Dtype::float32, StreamOrDevice s = {});
// Ones on and below the k-th diagonal.
SDX_API array tri(int n, std::optional<int> m = std::nullopt, int k = 0, Dtype dtype = Dtype::float32, StreamOrDevice s = {});
// The lower and the upper triangle of the last two axes, zeros elsewhere.
SDX_API array tril(const array& x, int k = 0, StreamOrDevice s = {});
SDX_API array triu(const array& x, int k = 0, StreamOrDevice s = {});

// `indexing`: "xy" or "ij". `sparse`: extents of 1 instead of repetition.
SDX_API std::vector<array> meshgrid(const std::vector<array>& arrays, bool sparse = false, std::string_view indexing = "xy",
                                    StreamOrDevice s = {});

// Windows of m numbers, float32.
SDX_API array bartlett(int m, StreamOrDevice s = {});
SDX_API array blackman(int m, StreamOrDevice s = {});
SDX_API array hamming(int m, StreamOrDevice s = {});
SDX_API array hanning(int m, StreamOrDevice s = {});

// Kinds of element types: generic > number > integer > signedinteger, unsignedinteger; number > inexact > floating,
// complexfloating. bool is only generic.
enum class DtypeCategory : std::uint8_t {
  complexfloating,
  floating,
  inexact,
  signedinteger,
  unsignedinteger,
  integer,
  number,
  generic,
};
SDX_API DtypeCategory category(Dtype dtype) noexcept;
using DtypeOrCategory = std::variant<Dtype, DtypeCategory>;
// Whether type a is b, or belongs to the category b.
SDX_API bool issubdtype(const DtypeOrCategory& a, const DtypeOrCategory& b) noexcept;
// Kinds of the Python array API: "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating" or
// "numeric". Throws Error(invalid_argument) for other kinds.
SDX_API bool isdtype(Dtype dtype, std::string_view kind);
// The type that both promote to: see docs/arrays.md.
SDX_API Dtype promote_types(Dtype a, Dtype b);
SDX_API Dtype result_type(const std::vector<Dtype>& types);
SDX_API Dtype result_type(const array& a, const array& b);
// Whether promotion leads from one type to the other.
SDX_API bool can_cast(Dtype from, Dtype to);

// The limits of a floating-point type; of a complex type, those of its parts. Throws Error(invalid_argument) for other types.
struct FloatInfo {
  int bits;
  double min, max, eps, smallest_normal;
  Dtype dtype;
};
SDX_API FloatInfo finfo(Dtype dtype);
// The limits of an integer type. Throws Error(invalid_argument) for other types.
struct IntegerInfo {
  int bits;
  std::int64_t min;
  std::uint64_t max;
  Dtype dtype;
};
SDX_API IntegerInfo iinfo(Dtype dtype);

}  // namespace sdx::array
