// One generation request while it runs: the engine's events go in, bytes of the answer come out. Lives on its
// connection's I/O thread and knows no socket.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/answer_text.h"
#include "server/generation.h"

namespace inferd {

// From one moment of the monotonic clock to another; 0 when the first never came, or came later.
double elapsed_ms(int64_t from_ns, int64_t to_ns);

class StreamSession {
 public:
  // The tokenizer must outlive the session.
  StreamSession(const Tokenizer& tokenizer, Generation generation, std::unique_ptr<AnswerFormat> format,
                std::string request_id);

  bool streams() const { return generation_.stream; }

  // To submit, in order; events then come with the index of the request here. Call once.
  std::vector<Request> take_requests() { return std::move(generation_.requests); }

  // After the requests were accepted. A request for no tokens is finished then.
  void begin();
  void on_event(size_t request, Event event);
  // Ends what is open with an error event, or an error reply.
  void fail(const Error& error);

  // Nothing will be added to the output any more.
  bool finished() const { return finished_; }
  // And every answer came to its own end; otherwise the engine may still be at work on some.
  bool completed() const { return open_ == 0; }

  // For the log: how it ended ("stop", "length", an error's code; empty: not yet), what was drawn so far, and
  // the times of what has ended.
  std::string_view outcome() const { return outcome_; }
  int64_t drawn() const { return drawn_; }
  const Totals& totals() const { return totals_; }

  std::string& output() { return output_; }             // of a stream: bytes that were not sent yet
  HttpReply take_reply() { return std::move(reply_); }  // of others, once finished

 private:
  struct State {
    AnswerText text;
    Answer answer;
    bool started = false;
  };

  void on_token(size_t index, Event event);
  void on_end(size_t index, const Event& event);
  void send_delta(size_t index, std::string text, std::vector<TokenInfo> tokens);
  void end_answer(size_t index);
  void add_stats(size_t index, const RequestStats& stats);

  Generation generation_;
  const std::unique_ptr<AnswerFormat> format_;
  const std::string request_id_;
  std::vector<State> states_;
  size_t open_;
  Totals totals_;
  int64_t arrival_ns_ = 0, scheduled_ns_ = 0, first_token_ns_ = 0, finished_ns_ = 0;  // 0: not yet
  bool finished_ = false;
  std::string_view outcome_;
  int64_t drawn_ = 0;
  std::string output_;
  HttpReply reply_;
};

}  // namespace inferd
