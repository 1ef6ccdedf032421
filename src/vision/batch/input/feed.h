#pragma once
// Supplies the pictures of a batch, one after the other.

#include <functional>
#include <istream>
#include <memory>
#include <optional>
#include <vector>

#include <sdx/image.hpp>

#include "vision/batch/input/inputs.h"

namespace sdx::vision::batch {

struct Next {
  Input input;
  std::optional<media::Image> frame;
};

// The next picture; empty at the end, or once an interrupt is requested. Called by one thread at a time; may wait.
using Feed = std::function<std::optional<Next>()>;

Feed list_feed(std::vector<Input> inputs);

// Frames as FrameReader has them, called "-#1", "-#2", …; damaged ones come as errors. Keeps a reference.
Feed frame_feed(std::istream& in);

// A file descriptor as a stream whose reading ends when an interrupt is requested.
std::unique_ptr<std::istream> interruptible_stream(int fd);

// Watches the folders and those below them, from the moment it is made.
class Watch;
// `outputs`: folders to ignore. Throws Error(io) if the folders cannot be watched.
std::shared_ptr<Watch> watch_folders(const std::vector<std::filesystem::path>& folders,
                                     const std::vector<std::filesystem::path>& outputs);
// After `first`, yields every file that is written into or moved into the folders, except hidden files and files that are not
// pictures. A file that is written again comes again. Ends only with an interrupt.
Feed watch_feed(std::shared_ptr<Watch> watch, Feed first);

}  // namespace sdx::vision::batch
