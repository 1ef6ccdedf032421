#include "onnx/external_data.h"

#include <algorithm>
#include <optional>
#include <system_error>

#include "base/error.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;

// The location as a relative path. Throws where it names no file below the model's folder.
fs::path checked_path(const std::string& location) {
  if (location.empty()) fail(ErrorCode::invalid_model, "external data: the location is empty");
  if (location.find('\0') != std::string::npos) fail(ErrorCode::invalid_model, "external data: the location holds a zero byte");
  fs::path path = plain_location(location);
  const std::string text = path.generic_string();
  const bool drive = text.size() >= 2 && text[1] == ':';
  if (text.front() == '/' || drive) {
    fail(ErrorCode::invalid_model, "external data: the location '{}' is absolute; it must be relative to the model's folder",
         location);
  }
  if (*path.begin() == "..") {
    fail(ErrorCode::invalid_model, "external data: the location '{}' leaves the model's folder by '..'", location);
  }
  return path;
}

// Refuses names such as "link/../w.bin", which the system resolves to another file than a reader expects.
void check_links(const fs::path& root, const std::string& location, const fs::path& file) {
  std::string text = location;
  std::replace(text.begin(), text.end(), '\\', '/');
  std::error_code error;
  const fs::path followed = fs::canonical(root / path_of(text), error);
  if (error || followed == file) return;
  fail(ErrorCode::invalid_model,
       "external data: the location '{}' passes through a symbolic link and leads to '{}', not to '{}': name the file without "
       "'..'",
       location, followed.string(), file.string());
}

bool inside(const fs::path& file, const fs::path& folder) {
  const auto [a, b] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  return a == folder.end() || (a->empty() && std::next(a) == folder.end());
}

}  // namespace

fs::path plain_location(std::string_view location) {
  std::string text(location);
  std::replace(text.begin(), text.end(), '\\', '/');
  return path_of(text).lexically_normal();
}

const std::shared_ptr<const MappedFile>& ExternalFiles::open(const std::string& location) {
  const auto known = files_.find(location);
  if (known != files_.end()) return known->second;
  const fs::path plain = roots_.at(0) / checked_path(location);
  std::error_code error;
  const fs::path file = fs::canonical(plain, error);
  if (error) {
    fail(ErrorCode::io, "external data: cannot open '{}' (location '{}'): {}", plain.string(), location, error.message());
  }
  const bool allowed = std::any_of(roots_.begin(), roots_.end(), [&](const fs::path& root) {
    std::error_code e;
    const fs::path folder = fs::canonical(root, e);
    return !e && inside(file, folder);
  });
  if (!allowed) {
    fail(ErrorCode::invalid_model, "external data: the location '{}' leads to '{}', which is outside the model's folder",
         location, file.string());
  }
  check_links(roots_[0], location, file);
  std::shared_ptr<const MappedFile>& mapped = resolved_[file.string()];
  if (mapped == nullptr) {
    const bool all = copied_ == MappedFile::kAll;
    mapped = MappedFile::open(file, all ? copied_ : std::min(copied_, may_copy_));
    if (!all && !mapped->is_mapped()) may_copy_ -= mapped->bytes().size();
  }
  return files_.emplace(location, mapped).first->second;
}

namespace {

OwnedBytes part_of(const OwnedBytes& file, const ExternalReference& reference, std::size_t size) {
  const std::size_t available = file.data.size();
  if (reference.offset > available || size > available - reference.offset) {
    fail(ErrorCode::invalid_model, "external data: {} bytes at offset {} of '{}' are needed, but the file has {} bytes", size,
         reference.offset, reference.location, available);
  }
  return {file.data.subspan(reference.offset, size), file.owner};
}

// Returns the tensor or file that the program gave from memory, or nothing.
std::optional<OwnedBytes> find_given(const GivenData* data, const ExternalReference& reference, std::size_t size) {
  if (data == nullptr) return std::nullopt;
  if (const auto tensor = data->tensors.find(reference.tensor); tensor != data->tensors.end()) {
    const Tensor& t = tensor->second;
    if (t.bytes() != size) {
      fail(ErrorCode::invalid_argument,
           "the tensor that is given for initializer '{}' is {} and has {} bytes; the model needs {}", reference.tensor,
           t.type_string(), t.bytes(), size);
    }
    // The handle itself is what keeps memory alive that another tensor owns.
    return OwnedBytes{{static_cast<const std::byte*>(t.data()), size}, std::make_shared<const Tensor>(t)};
  }
  auto file = data->files.find(reference.location);
  if (file == data->files.end()) file = data->files.find(plain_location(reference.location).generic_string());
  if (file == data->files.end()) return std::nullopt;
  return part_of(file->second, reference, size);
}

}  // namespace

OwnedBytes ExternalFiles::read(const ExternalReference& reference, std::size_t size) {
  if (std::optional<OwnedBytes> held = find_given(given_, reference, size)) return *std::move(held);
  if (roots_.empty()) {
    fail(ErrorCode::invalid_model,
         "external data: '{}' cannot be resolved here; read the model from its file, or pass the folder that contains the data",
         reference.location);
  }
  const std::shared_ptr<const MappedFile>& file = open(reference.location);
  return part_of({file->bytes(), file}, reference, size);
}

}  // namespace sdx
