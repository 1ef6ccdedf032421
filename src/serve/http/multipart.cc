#include "serve/http/multipart.h"

#include <algorithm>

#include "base/error.h"
#include "base/text/ascii.h"
#include "serve/http/text.h"

namespace sdx::serve {
namespace {

// Reads `; name=value; name="value"` and returns the value of that name. Browsers write quotes and line ends in values as %22,
// %0D, %0A, or with a backslash.
std::string parameter(std::string_view text, std::string_view wanted) {
  std::size_t at = text.find(';');
  while (at < text.size()) {
    const std::size_t equals = text.find('=', ++at);
    if (equals == std::string_view::npos) break;
    const std::string_view name = trimmed(text.substr(at, equals - at));
    std::string value;
    at = equals + 1;
    if (at < text.size() && text[at] == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at) {
        if (text[at] == '\\' && at + 1 < text.size() && (text[at + 1] == '"' || text[at + 1] == '\\')) ++at;
        value.push_back(text[at]);
      }
      at = text.find(';', at);
    } else {
      const std::size_t end = std::min(text.find(';', at), text.size());
      value = trimmed(text.substr(at, end - at));
      at = end;
    }
    if (same_word(name, wanted)) return value;
  }
  return "";
}

void read_part_head(std::string_view head, Part& part) {
  bool disposed = false;
  while (!head.empty()) {
    const std::size_t end = std::min(head.find("\r\n"), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + 2, head.size()));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos)
      fail(ErrorCode::invalid_argument, "a part of the form has a header that is not 'Name: value'");
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (same_word(line.substr(0, colon), "content-disposition")) {
      if (!same_word(trimmed(value.substr(0, value.find(';'))), "form-data")) {
        fail(ErrorCode::invalid_argument, "a part of the form is not form-data");
      }
      disposed = true;
      part.name = parameter(value, "name");
      part.file_name = parameter(value, "filename");
    } else if (same_word(line.substr(0, colon), "content-type")) {
      part.type = value;
    }
  }
  if (!disposed) fail(ErrorCode::invalid_argument, "a part of the form has no Content-Disposition");
}

}  // namespace

std::string multipart_boundary(std::string_view content_type) {
  if (!same_word(trimmed(content_type.substr(0, content_type.find(';'))), "multipart/form-data")) return "";
  std::string boundary = parameter(content_type, "boundary");
  const bool plain = std::all_of(boundary.begin(), boundary.end(), [](unsigned char c) { return c >= 0x20 && c < 0x7f; });
  return plain && boundary.size() <= 70 ? boundary : "";
}

std::vector<Part> parse_multipart(std::string_view body, std::string_view boundary, const MultipartLimits& limits) {
  if (boundary.empty()) fail(ErrorCode::invalid_argument, "the form has no boundary");
  const std::string first = fmt::format("--{}", boundary);
  const std::string next = fmt::format("\r\n--{}", boundary);
  std::size_t at = body.starts_with(first) ? first.size() : body.find(next);
  if (at == std::string_view::npos) fail(ErrorCode::invalid_argument, "the form does not begin with its boundary");
  if (!body.starts_with(first)) at += next.size();
  std::vector<Part> parts;
  while (true) {
    if (body.substr(at).starts_with("--")) return parts;
    while (at < body.size() && (body[at] == ' ' || body[at] == '\t')) ++at;
    if (!body.substr(at).starts_with("\r\n"))
      fail(ErrorCode::invalid_argument, "a boundary of the form is followed by other text");
    at += 2;
    if (parts.size() == limits.parts) fail(ErrorCode::invalid_argument, "the form has more than {} parts", limits.parts);
    const std::size_t head_end = body.substr(at, limits.head_bytes + 4).find("\r\n\r\n");
    if (head_end == std::string_view::npos) {
      fail(ErrorCode::invalid_argument, "a part of the form has no end of its headers within {} bytes", limits.head_bytes);
    }
    Part part;
    read_part_head(body.substr(at, head_end), part);
    at += head_end + 4;
    // The body may be empty, and its line end then that of the headers.
    const std::size_t end = body.find(next, at - 2);
    if (end == std::string_view::npos) fail(ErrorCode::invalid_argument, "the form ends within a part");
    part.body = body.substr(std::min(at, end), end - std::min(at, end));
    at = end + next.size();
    parts.push_back(std::move(part));
  }
}

}  // namespace sdx::serve
