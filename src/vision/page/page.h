#pragma once
// The answers of the page's server.

#include <atomic>
#include <semaphore>
#include <string>

#include "serve/http/server.h"
#include "vision/page/store.h"

namespace sdx::faces::page {

struct PageLimits {
  std::uint64_t upload_bytes = 64ull << 20;  // of one picture's file
  std::size_t memory = 1ull << 30;           // of all pictures, as files and as pixels
  std::uint64_t zip_bytes = 512ull << 20;    // of all crops in one ZIP file
  int zip_entries = 500;
};

class Page {
 public:
  Page(Backend backend, std::string token, PageLimits limits, Runtime runtime);

  // A handler for serve::Server. The path "/" takes the token as ?token=…, every other path as the header field X-Sdx-Token,
  // which no page of another site can send.
  serve::Admission admit(const serve::Request& request) const;
  serve::Response handle(const serve::Request& request);

  static constexpr const char* kHosts[] = {"127.0.0.1", "localhost"};

 private:
  serve::Response document() const;
  serve::Response info() const;
  serve::Response upload(const serve::Request& request);
  serve::Response picture(const serve::Request& request, const std::string& id, const std::string& what);
  serve::Response preview(const serve::Request& request, const Picture& picture) const;
  serve::Response crop(const serve::Request& request, Picture& picture);
  serve::Response zip(const serve::Request& request);
  serve::Response switch_runtime(const serve::Request& request);

  std::shared_ptr<const Looked> look(Picture& picture, Runtime runtime);

  const Backend backend_;
  const std::string token_;
  const PageLimits limits_;
  PictureStore store_;
  std::counting_semaphore<> uploads_{2};  // a picture takes most memory while it is decoded
  std::atomic<Runtime> runtime_;
  std::atomic<std::uint64_t> next_id_{1};
};

}  // namespace sdx::faces::page
