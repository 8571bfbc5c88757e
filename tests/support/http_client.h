// A small HTTP client over a raw socket, for tests: it sends any bytes, and reads what comes.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace inferd::test {

struct HttpResponse {
  int status = 0;                                            // 0: nothing came
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;                                          // chunks joined
  bool complete = false;

  std::string header(std::string_view name) const;  // empty when absent
  Json json() const;                                // ends the test program when the body is no JSON
  // The data of each server-sent event, comments left out.
  std::vector<std::string> events() const;
};

class HttpClient {
 public:
  // Connects to 127.0.0.1. `receive_buffer`: bytes of the kernel's buffer; 0: as it likes.
  explicit HttpClient(int port, int receive_buffer = 0);
  ~HttpClient() { close(); }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  bool connected() const { return socket_ >= 0; }
  // False when the server has closed the connection.
  bool send(std::string_view bytes);
  // Bytes as they come; empty at the end of the stream, or when nothing came in time.
  std::string receive(std::chrono::milliseconds timeout = std::chrono::seconds(20));
  // One response of several on this connection. `head`: it answers a HEAD request.
  HttpResponse read_response(std::chrono::milliseconds timeout = std::chrono::seconds(20), bool head = false);
  // True when the server closes within the time; what comes before is thrown away.
  bool wait_closed(std::chrono::milliseconds timeout = std::chrono::seconds(20));

  void shut_down_sending();
  void close();  // in the ordinary way
  void reset();  // with RST

 private:
  bool fill(std::chrono::steady_clock::time_point end);

  int socket_ = -1;
  std::string buffer_;  // received, not given out
  bool ended_ = false;
};

using Headers = std::vector<std::pair<std::string, std::string>>;

std::string request_text(std::string_view method, std::string_view path, std::string_view body = "",
                         const Headers& headers = {});

// One request on a connection of its own.
HttpResponse http(int port, std::string_view method, std::string_view path, std::string_view body = "",
                  const Headers& headers = {});
HttpResponse get(int port, std::string_view path, const Headers& headers = {});
HttpResponse post(int port, std::string_view path, std::string_view body, const Headers& headers = {});

}  // namespace inferd::test
