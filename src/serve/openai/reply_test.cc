#include "serve/openai/reply.h"

#include <gtest/gtest.h>

#include <thread>

#include "serve/openai/heartbeats.h"

namespace sdx::serve::openai {
namespace {

// Remembers what came.
struct Seen {
  std::mutex mutex;
  int status = 0;
  std::string text;
  bool ended = false, held = true, gone = false;
};

class Remembering final : public Responder {
 public:
  explicit Remembering(std::shared_ptr<Seen> seen) : seen_(std::move(seen)) {}
  ~Remembering() override { seen_->held = false; }
  void respond(Response response) override {
    start(std::move(response));
    end();
  }
  void start(Response head) override {
    const std::lock_guard lock(seen_->mutex);
    seen_->status = head.status;
    seen_->text = head.body;
  }
  bool write(std::string_view bytes) override {
    const std::lock_guard lock(seen_->mutex);
    seen_->text += bytes;
    return !seen_->gone;
  }
  void end() override { seen_->ended = true; }
  void cut() override {}
  bool gone() const override { return seen_->gone; }
  void on_gone(std::function<void()>) override {}

 private:
  std::shared_ptr<Seen> seen_;
};

struct Pair {
  std::shared_ptr<Seen> seen = std::make_shared<Seen>();
  std::shared_ptr<Reply> reply;
  explicit Pair(bool stream) : reply(std::make_shared<Reply>(std::make_shared<Remembering>(seen), stream)) {}
};

TEST(Reply, EventsBeforeTheBeginningComeBehindIt) {
  Pair p(true);
  EXPECT_TRUE(p.reply->send("2"));
  EXPECT_EQ(p.seen->status, 0);
  p.reply->open("1");
  EXPECT_TRUE(p.reply->send("3"));
  p.reply->finish("4");
  p.reply->let_go();
  EXPECT_EQ(p.seen->text, "1234");
  EXPECT_TRUE(p.seen->ended && !p.seen->held);
  EXPECT_FALSE(p.reply->send("5"));
}

TEST(Reply, AnAnswerThatIsOverBeforeItBegins) {
  Pair p(true);
  p.reply->send("2");
  p.reply->finish("3");
  p.reply->let_go();
  EXPECT_FALSE(p.seen->ended);
  p.reply->open("1");
  EXPECT_EQ(p.seen->text, "123");
  EXPECT_TRUE(p.seen->ended && !p.seen->held);
}

TEST(Reply, ErrorsAreAStatusOrAnEvent) {
  Pair early(true);
  early.reply->send("lost");
  early.reply->fail(ApiError(503, "full"));
  early.reply->open("1");
  EXPECT_EQ(early.seen->status, 503);
  EXPECT_EQ(early.seen->text, error_json(ApiError(503, "full")));
  Pair late(true);
  late.reply->open("1");
  late.reply->fail(ApiError(500, "broken"));
  late.reply->finish("never");
  EXPECT_EQ(late.seen->status, 200);
  EXPECT_EQ(late.seen->text, "1data: " + error_json(ApiError(500, "broken")) + "\n\n");
  EXPECT_TRUE(late.seen->ended);
  Pair whole(false);
  whole.reply->finish("{}");
  whole.reply->fail(ApiError(500, "broken"));
  EXPECT_EQ(whole.seen->text, "{}");
}

TEST(Reply, WhoeverDoesNotReadIsTold) {
  Pair p(true);
  p.reply->open("");
  p.seen->gone = true;
  EXPECT_FALSE(p.reply->send("x"));
}

TEST(Heartbeats, SilentStreamsGetComments) {
  Heartbeats heartbeats(std::chrono::milliseconds(20));
  Pair p(true), closed(true);
  heartbeats.watch(p.reply);
  heartbeats.watch(closed.reply);
  p.reply->open("");
  const auto beats = [&] {
    const std::lock_guard lock(p.seen->mutex);
    return p.seen->text.size();
  };
  while (beats() < 2 * std::string_view(": keep-alive\n\n").size()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const std::lock_guard lock(p.seen->mutex);
  EXPECT_TRUE(p.seen->text.starts_with(": keep-alive\n\n: keep-alive\n\n"));
  EXPECT_EQ(closed.seen->text, "");
}

}  // namespace
}  // namespace sdx::serve::openai
