#pragma once
// Weights in files beside the model. A model may come from anywhere, so it may only name files inside its own folder.

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/system/mapped_file.h"
#include "onnx/given_data.h"
#include "tensor/pb.h"

namespace sdx {

// The location as models mean it: backslashes separate too, because exporters on Windows write them; "./a/../b" is "b". What
// leads out of the folder begins with ".." or "/".
std::filesystem::path plain_location(std::string_view location);

// Opens each file once. A location must be relative, may not leave its folder by "..", and, with all symbolic links resolved,
// must lie inside one of `roots` (again resolved). Locations are relative to the first root. Two roots are useful where model and
// data are both links into one store, as download caches lay them out: then the folder of the resolved model file is allowed as
// well. Without roots only what the program gave in memory (`given`) is found, which also comes before files.
class ExternalFiles : public ExternalData {
 public:
  // `copied`: see MappedFile::open(). `given` may be null.
  explicit ExternalFiles(std::vector<std::filesystem::path> roots, std::size_t copied = MappedFile::kCopied,
                         const GivenData* given = nullptr)
      : roots_(std::move(roots)), given_(given), copied_(copied) {}
  OwnedBytes read(const ExternalReference& reference, std::size_t size) override;

 private:
  const std::shared_ptr<const MappedFile>& open(const std::string& location);

  std::vector<std::filesystem::path> roots_;
  const GivenData* given_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;  // by location
  std::map<std::string, std::shared_ptr<const MappedFile>> resolved_;
  std::size_t copied_;
  std::size_t may_copy_ = std::size_t{64} << 20;  // bytes: a model may have a file for each of its weights
};

}  // namespace sdx
