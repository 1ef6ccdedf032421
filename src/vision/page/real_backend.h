#pragma once

#include "vision/batch/request.h"
#include "vision/page/backend.h"

namespace sdx::faces::page {

// Opens the request's model as its flags say. Throws Error, as FaceDetector::load() does.
Backend real_backend(const vision::Request& request);

}  // namespace sdx::faces::page
