#pragma once
// A model as it computes in another type, converted when it is first asked for and kept.

#include <filesystem>
#include <memory>

#include <sdx/session.hpp>

namespace sdx::cache {
class CacheEntry;
}

namespace sdx::project {

// Holds the file while it is in use: in the cache folder (SessionOptions::cache_folder, `sdx cache`), else in a temporary one
// that goes with this object.
class ConvertedModel {
 public:
  // Throws what convert_model() throws. A model that computes nothing in float32 stays what it is.
  ConvertedModel(const std::filesystem::path& model, DataType dtype, bool keep_io, const SessionOptions& options);
  ~ConvertedModel();
  ConvertedModel(const ConvertedModel&) = delete;
  ConvertedModel& operator=(const ConvertedModel&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // False where an earlier conversion was used.
  bool made() const { return made_; }

 private:
  std::filesystem::path path_, temporary_;
  std::shared_ptr<cache::CacheEntry> entry_;
  bool made_ = false;
};

}  // namespace sdx::project
