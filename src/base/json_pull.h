// Reads JSON from front to back without making a tree: for files whose arrays and objects hold hundreds of
// thousands of values. The caller asks for what it expects, in the order of the text; the first thing that is
// otherwise ends the reading with an error. One per text, used by one thread.
//   JsonPull json(text);
//   json.begin_object();
//   for (std::string_view key; json.next_key(key);) {
//     if (key == "n") json.integer(n); else json.skip();
//   }
//   if (!json.finish()) ... json.error() ...
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace inferd {

class JsonPull {
 public:
  enum class Kind : uint8_t { null, boolean, number, string, array, object };

  // The text, which outlives this and all strings that it gives out. Grammar and limits are those of
  // parse_json() with its default depth, but a key may come twice: the caller sees both.
  explicit JsonPull(std::string_view text);

  // Of the value that comes next. None: an error, or no value.
  std::optional<Kind> peek();

  // Each reads one value, or what begins or goes on with one. False: it was not there; all later calls are
  // false too, and error() says why.
  bool string(std::string_view& value);  // valid UTF-8, escapes resolved; lives as long as this
  bool integer(int64_t& value);
  bool number(double& value);
  bool boolean(bool& value);
  bool null();
  bool begin_object();
  bool begin_array();
  bool skip();                        // one whole value
  bool skip(std::string_view& text);  // and its text

  // The next key, with its value to be read next, or the next element. False at the end of the object or
  // array, which is left then, and after an error.
  bool next_key(std::string_view& key);
  bool next_element();

  // True: the text was one whole value, and nothing failed.
  bool finish();

  bool failed() const { return error_.has_value(); }
  // Ends the reading with an error of the caller's own, at the place reached. Always false.
  bool fail(std::string what);
  // What was wrong and at which byte. Requires failed().
  std::string error() const;

 private:
  bool expect(char c);
  bool literal(std::string_view word);
  bool next(char close);
  bool escaped(std::string& out);
  bool unit(uint32_t& value);
  std::string_view number_text();
  void skip_space();

  std::string_view text_;
  size_t at_ = 0;
  std::vector<bool> first_;           // of each open array or object: does its first member come next?
  std::vector<Kind> kinds_;           // of the arrays and objects that skip() is inside
  std::deque<std::string> resolved_;  // blocks of strings that had escapes
  std::optional<std::string> error_;
  size_t error_at_ = 0;
};

}  // namespace inferd
