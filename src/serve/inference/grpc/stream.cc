#include "stream.h"

#include <deque>
#include <mutex>
#include <utility>

#include "messages.h"

namespace sdx::serve {
namespace {

using grpc::Status;
using grpc::StatusCode;
using Answer = inference::ModelStreamInferResponse;

constexpr std::size_t kMostUnsent = std::size_t{1} << 20;  // bytes of text that wait for a client; beyond, the answer ends

class Stream : public grpc::ServerBidiReactor<inference::ModelInferRequest, Answer> {
 public:
  Stream(Calls& calls, grpc::CallbackServerContext* context) : calls_(calls), context_(context) {
    if (const auto refused = calls_.refused(*context, call_, false)) {
      Finish(*refused);
      return;
    }
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      Finish(Status::OK);
    } else if (!calls_.pool.submit([this] { ask(); })) {
      end({StatusCode::RESOURCE_EXHAUSTED, "the server is busy; try again later"});
    }
  }
  void OnWriteDone(bool ok) override {
    std::unique_lock lock(mutex_);
    if (!ok) {
      gone_ = true;
      unsent_.clear();
      const auto text = text_;
      lock.unlock();
      text->cancel();  // before the write counts as done: behind that the stream may end
      lock.lock();
    }
    writing_ = false;
    go_on(lock);
  }
  void OnCancel() override {
    cancel_.cancel();
    std::unique_lock lock(mutex_);
    const auto text = text_;
    lock.unlock();
    text->cancel();
  }
  void OnDone() override { delete this; }

 private:
  // Every request ends with one call of put() that says `last`, whose answer may be the stream's end: nothing is touched behind
  // it.
  void ask() {
    // The first request's share was taken when the stream began.
    if (std::exchange(asked_, true)) {
      call_.held.reset();
      if (const auto refused = calls_.refused(*context_, call_, false)) return end(*refused);
    }
    try {
      InferRequest request = request_of(request_);
      limit_time(request, *context_);
      request.run.cancel = cancel_;
      if (calls_.host.generates(request.model, request.version)) {
        generate(std::move(request));
      } else {
        calls_.host.infer(std::move(request), [this](const InferResult& result) { answer(result, true, false); });
      }
    } catch (...) {
      end(status_of(calls_.host.meaning(std::current_exception())));
    }
  }

  void generate(InferRequest request) {
    const auto wish = request_.parameters().find("triton_enable_empty_final_response");
    const bool empty_end = wish != request_.parameters().end() && wish->second.bool_param();
    const auto text = std::make_shared<LateCancel>();
    {
      const std::lock_guard lock(mutex_);
      text_ = text;
    }
    if (cancel_.cancelled()) text->cancel();
    calls_.host.generate(
        std::move(request),
        [this, empty_end](const InferResult& result, bool last) { return answer(result, last, true, empty_end); }, text);
  }

  // Whoever calls this serves others too: nothing may leave it.
  bool answer(const InferResult& result, bool last, bool text, bool empty_end = false) {
    if (result.error) {
      end(status_of(calls_.host.meaning(result.error)));
      return false;
    }
    Answer out;
    const Status status = calls_.attempt([&] {
      auto& response = *out.mutable_infer_response();
      fill_response(response, request_.id(), result);
      if (!text) return;
      // Marks the answers of models that give several, as Triton does.
      (*response.mutable_parameters())["triton_final_response"].set_bool_param(last);
      if (last && result.outputs.empty() && !empty_end) add_text(response, "text_output", "");
    });
    if (status.ok()) return put(std::move(out), last);
    if (last) end(status);
    return false;
  }
  void end(const Status& status) {
    Answer out;
    out.set_error_message(status.error_message().empty() ? "the request failed" : status.error_message());
    out.mutable_infer_response()->set_id(request_.id());
    put(std::move(out), true);
  }

  // False where no more is wanted.
  bool put(Answer&& answer, bool last) {
    std::unique_lock lock(mutex_);
    if (!gone_) {
      bytes_ += answer.ByteSizeLong();
      unsent_.push_back(std::move(answer));
    }
    ended_ = ended_ || last;
    const bool more = !gone_ && bytes_ <= kMostUnsent;
    go_on(lock);
    return more;
  }
  void go_on(std::unique_lock<std::mutex>& lock) {
    if (writing_) return;
    if (!unsent_.empty()) {
      writing_ = true;
      sent_ = std::move(unsent_.front());
      unsent_.pop_front();
      bytes_ -= sent_.ByteSizeLong();
      lock.unlock();
      return StartWrite(&sent_);
    }
    if (!ended_) return;
    ended_ = false;
    const bool gone = gone_;
    lock.unlock();
    if (gone) return Finish({StatusCode::CANCELLED, "the client has disconnected"});
    StartRead(&request_);
  }
  Calls& calls_;
  bool asked_ = false;  // a request of this stream before
  grpc::CallbackServerContext* context_;
  GrpcCall call_;
  CancelToken cancel_;
  inference::ModelInferRequest request_;

  std::mutex mutex_;
  std::shared_ptr<LateCancel> text_ = std::make_shared<LateCancel>();  // the text under way, or the last one
  std::deque<Answer> unsent_;
  std::size_t bytes_ = 0;  // of these
  Answer sent_;            // while it is being written
  bool writing_ = false;
  bool ended_ = false;  // the last answer to the request under way is among them
  bool gone_ = false;
};

}  // namespace

grpc::ServerBidiReactor<inference::ModelInferRequest, Answer>* new_stream(Calls& calls, grpc::CallbackServerContext* context) {
  return new Stream(calls, context);
}

}  // namespace sdx::serve
