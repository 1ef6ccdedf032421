#pragma once
// multipart/form-data (RFC 7578), as browsers send forms with files.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sdx::serve {

struct Part {
  std::string name;       // of the form's field
  std::string file_name;  // as sent: never a path to be opened; empty when the part is not a file
  std::string type;       // Content-Type; empty when there is none
  std::string_view body;  // into the request's body
};

struct MultipartLimits {
  std::size_t parts = 64;
  std::size_t head_bytes = 8192;  // of one part
};

// "boundary" of a Content-Type; empty unless that is multipart/form-data with a boundary of 1 to 70 bytes.
std::string multipart_boundary(std::string_view content_type);

// Returns the parts of `body`, which must outlive them. Throws Error(invalid_argument) for an invalid body, one that ends too
// early, and beyond the limits.
std::vector<Part> parse_multipart(std::string_view body, std::string_view boundary, const MultipartLimits& limits = {});

}  // namespace sdx::serve
