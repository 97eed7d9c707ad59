// SPDX-License-Identifier: Apache-2.0
#include "serve/http/received.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <poll.h>
#include <sys/socket.h>

#include "base/text.h"

namespace lamina::serve {
namespace {

using Clock = std::chrono::steady_clock;

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c < 0x7F &&
           std::string_view("\"(),/:;<=>?@[\\]{}").find(c) ==
               std::string_view::npos;
  });
}

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// "GET /path HTTP/1.1".
int CheckRequestLine(std::string_view line) {
  constexpr size_t kMostLine = 8000;
  if (line.size() > kMostLine) return 414;
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return 400;
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!IsToken(line.substr(0, first)) || !target.starts_with('/') ||
      target.find(' ') != std::string_view::npos)
    return 400;
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return 505;
  return 0;
}

// Whether a line ends otherwise than with CR LF: then no end of the head comes
// that is worth waiting for.
bool HasBareEnd(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n' && (i == 0 || text[i - 1] != '\r')) return true;
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] != '\n')
      return true;
  }
  return false;
}

}  // namespace

int CheckHead(std::string_view head, const HttpLimits& limits,
              size_t& body_bytes) {
  constexpr size_t kMostHeaders = 100;
  body_bytes = 0;
  bool has_length = false;
  bool is_first = true;
  size_t headers = 0;
  while (!head.empty()) {
    const size_t end = head.find("\r\n");
    if (end == std::string_view::npos) return 400;
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(end + 2);
    if (std::any_of(line.begin(), line.end(), [](char c) {
          return (c >= 0 && c < ' ' && c != '\t') || c == 0x7F;
        }))
      return 400;
    if (is_first) {
      if (const int status = CheckRequestLine(line)) return status;
      is_first = false;
      continue;
    }
    if (++headers > kMostHeaders) return 431;
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return 400;
    const std::string_view name = line.substr(0, colon);
    const std::string_view value = Trimmed(line.substr(colon + 1));
    // Also what is folded: it begins with a blank.
    if (!IsToken(name)) return 400;
    if (EqualsIgnoringCase(name, "content-length")) {
      if (has_length || value.empty() || value.size() > 18 ||
          !std::all_of(value.begin(), value.end(),
                       [](char c) { return c >= '0' && c <= '9'; }))
        return 400;
      has_length = true;
      body_bytes = std::stoull(std::string(value));
      if (body_bytes > limits.body_bytes) return 413;
    } else if (EqualsIgnoringCase(name, "transfer-encoding")) {
      return 411;
    } else if (EqualsIgnoringCase(name, "range")) {
      return 416;
    } else if (EqualsIgnoringCase(name, "expect")) {
      return 417;
    }
  }
  return is_first ? 400 : 0;
}

bool Receiver::Fill(Clock::time_point until) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - Clock::now());
    if (left.count() <= 0) return false;
    pollfd file{socket_, POLLIN, 0};
    const int ready = ::poll(&file, 1, static_cast<int>(left.count()) + 1);
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    std::array<char, 16384> buffer;
    const ssize_t got =
        ::recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return false;
    waiting_.append(buffer.data(), static_cast<size_t>(got));
    return true;
  }
}

int Receiver::Next(std::string& head, std::string& body) {
  if (waiting_.empty() && !Fill(Clock::now() + limits_.idle_time)) return -1;
  const auto until = Clock::now() + limits_.request_time;
  const auto late = [&] { return Clock::now() >= until ? 408 : -1; };
  size_t end = 0;
  size_t looked = 0;
  while ((end = waiting_.find("\r\n\r\n", looked)) == std::string::npos) {
    if (waiting_.size() > limits_.header_bytes) return 431;
    if (HasBareEnd(waiting_)) return 400;
    looked = waiting_.size() < 3 ? 0 : waiting_.size() - 3;
    if (!Fill(until)) return late();
  }
  if (end > limits_.header_bytes) return 431;
  head = waiting_.substr(0, end + 2);
  size_t body_bytes = 0;
  if (const int status = CheckHead(head, limits_, body_bytes)) return status;
  waiting_.erase(0, end + 4);
  while (waiting_.size() < body_bytes) {
    if (!Fill(until)) return late();
  }
  body = waiting_.substr(0, body_bytes);
  waiting_.erase(0, body_bytes);
  return 0;
}

}  // namespace lamina::serve
