// SPDX-License-Identifier: Apache-2.0
//
// lamina_http.so: connections by lamina, messages by cpp-httplib.
//
// Longer than most: nothing else may include cpp-httplib.
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <httplib.h>
#include <list>
#include <mutex>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "serve/http/received.h"

namespace lamina::serve {
namespace {

// A request in memory, whose answer goes to a socket.
class Exchange : public httplib::Stream {
 public:
  Exchange(int socket, std::string_view head, const HttpLimits& limits)
      : socket_(socket), head_(head), limits_(limits) {}

  bool failed() const { return failed_; }
  bool is_readable() const override { return !head_.empty(); }
  bool is_writable() const override { return !failed_; }
  ssize_t read(char* to, size_t size) override {
    size = std::min(size, head_.size());
    std::memcpy(to, head_.data(), size);
    head_.remove_prefix(size);
    return static_cast<ssize_t>(size);
  }
  ssize_t write(const char* from, size_t size) override {
    for (size_t at = 0; !failed_ && at < size;) {
      const ssize_t sent =
          ::send(socket_, from + at, size - at, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) {
        at += static_cast<size_t>(sent);
        continue;
      }
      if (sent < 0 && errno == EINTR) continue;
      pollfd file{socket_, POLLOUT, 0};
      failed_ =
          (sent < 0 && errno != EAGAIN) ||
          ::poll(&file, 1, static_cast<int>(limits_.write_time.count())) <= 0;
    }
    return failed_ ? -1 : static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  // The library compares it with FD_SETSIZE and does nothing else with it.
  socket_t socket() const override { return 0; }

 private:
  const int socket_;
  std::string_view head_;
  const HttpLimits& limits_;
  bool failed_ = false;
};

// What the library's requests have no place for.
thread_local int socket_of_thread = -1;

bool HasClosed(int socket) {
  char byte = 0;
  const ssize_t got = ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

class Messages : public httplib::Server {
 public:
  Messages(const HttpLimits& limits, HttpHandler handler)
      : limits_(limits), handler_(std::move(handler)) {
    // Without one of its own the library takes itself for shut down, and sends
    // no files.
    svr_sock_ = 0;
    set_keep_alive_max_count(limits_.requests_per_connection);
    set_keep_alive_timeout(limits_.idle_time.count() / 1000);
    set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          Answer(request, response);
          return HandlerResponse::Handled;
        });
    set_exception_handler([](const httplib::Request&, httplib::Response& to,
                             const std::exception_ptr&) { to.status = 500; });
  }

  // Answers requests until the peer goes or is sent away. `waits` is true while
  // a request is awaited.
  void Serve(int socket, std::atomic<bool>& waits) {
    Receiver receiver(socket, limits_);
    std::string head, body;
    for (size_t left = limits_.requests_per_connection; left > 0; --left) {
      waits = true;
      int status = receiver.Next(head, body);
      waits = false;
      if (status < 0) return;
      if (status != 0) {
        Refuse(socket, status);
        return;
      }
      // What the library would do with these is of no use here: it would pack
      // answers anew.
      head += "\r\n";
      socket_of_thread = socket;
      Exchange exchange(socket, head, limits_);
      bool closed = false;
      const bool done = process_request(
          exchange, left == 1, closed, [&](httplib::Request& request) {
            request.headers.erase("Accept-Encoding");
            request.body = std::move(body);
          });
      if (!done || closed || exchange.failed()) return;
    }
  }

  void Refuse(int socket, int status) {
    Exchange exchange(socket, {}, limits_);
    const std::string text =
        "HTTP/1.1 " + std::to_string(status) + " Refused\r\n" +
        (status == 503 ? "Retry-After: 1\r\n" : "") +
        "Connection: close\r\nX-Content-Type-Options: nosniff\r\n"
        "Content-Length: 0\r\n\r\n";
    exchange.write(text.data(), text.size());
    // With bytes unread a close resets the connection, and the answer is lost:
    // who sends on is heard out, within bounds.
    constexpr size_t kMostRest = size_t{16} << 20;
    constexpr auto kMostTime = std::chrono::seconds(2);
    const auto until = std::chrono::steady_clock::now() + kMostTime;
    ::shutdown(socket, SHUT_WR);
    std::array<char, 65536> rest;
    pollfd file{socket, POLLIN, 0};
    for (size_t heard = 0; heard < kMostRest;) {
      if (::poll(&file, 1, 200) <= 0) break;
      const ssize_t got =
          ::recv(socket, rest.data(), rest.size(), MSG_DONTWAIT);
      if (got <= 0 || std::chrono::steady_clock::now() >= until) break;
      heard += static_cast<size_t>(got);
    }
  }

 private:
  void Answer(const httplib::Request& from, httplib::Response& to) {
    HttpRequest request;
    request.method = from.method;
    request.path = from.path;
    for (const auto& [name, value] : from.headers)
      request.headers.emplace_back(name, value);
    request.body = from.body;
    request.gone = [socket = socket_of_thread] { return HasClosed(socket); };
    HttpResponse response = handler_(request);
    to.status = response.status;
    for (const auto& [name, value] : response.headers)
      to.set_header(name, value);
    if (response.stream) {
      to.set_chunked_content_provider(
          response.type, [stream = std::move(response.stream)](
                             size_t, httplib::DataSink& sink) {
            stream([&](std::string_view text) {
              return sink.write(text.data(), text.size());
            });
            sink.done();
            return true;
          });
      return;
    }
    if (!response.file.open() || response.file_bytes == 0) {
      to.set_content(response.body, response.type);
      return;
    }
    const auto file = std::make_shared<Descriptor>(std::move(response.file));
    to.set_content_provider(
        response.file_bytes, response.type,
        [file](size_t offset, size_t length, httplib::DataSink& sink) {
          std::array<char, 65536> part;
          const ssize_t got =
              ::pread(file->get(), part.data(), std::min(part.size(), length),
                      static_cast<off_t>(offset));
          return got > 0 && sink.write(part.data(), static_cast<size_t>(got));
        });
  }

  const HttpLimits limits_;
  const HttpHandler handler_;
};

// A thread for each connection; few enough of them, and most wait.
class Connections : public HttpServer {
 public:
  Connections(const HttpLimits& limits, HttpHandler handler)
      : limits_(limits),
        shared_(std::make_shared<Shared>(limits, std::move(handler))) {}

  void Run(int listener, int stop) override {
    while (true) {
      std::array<pollfd, 2> files = {pollfd{listener, POLLIN, 0},
                                     pollfd{stop, POLLIN, 0}};
      if (::poll(files.data(), files.size(), -1) < 0 && errno != EINTR) break;
      if (files[1].revents != 0) break;
      if (files[0].revents == 0) continue;
      const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket >= 0) {
        Take(socket);
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
                 errno == ENOMEM) {
        // It stays in the queue until a descriptor is free.
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
    }
    std::unique_lock lock(shared_->mutex);
    for (const auto& one : shared_->open) ::shutdown(one->socket, SHUT_RDWR);
    shared_->changed.wait_for(lock, std::chrono::seconds(2),
                              [&] { return shared_->open.empty(); });
  }

 private:
  struct Connection {
    int socket = -1;
    bool refused = false;
    std::atomic<bool> waits{true};  // for a request
  };
  struct Shared {
    Shared(const HttpLimits& limits, HttpHandler handler)
        : messages(limits, std::move(handler)) {}
    Messages messages;
    std::mutex mutex;
    std::condition_variable changed;
    std::list<std::shared_ptr<Connection>> open;  // the oldest first
    size_t refusing = 0;
  };

  // Half a request holds a place until another one needs it: of those that
  // wait for more the oldest goes. False: all are being answered.
  bool MakeRoom() {
    for (const auto& one : shared_->open) {
      if (one->refused || !one->waits.exchange(false)) continue;
      ::shutdown(one->socket, SHUT_RDWR);
      return true;
    }
    return false;
  }

  void Take(int socket) {
    const auto one = std::make_shared<Connection>();
    one->socket = socket;
    {
      const std::lock_guard lock(shared_->mutex);
      one->refused =
          shared_->open.size() - shared_->refusing >= limits_.connections &&
          !MakeRoom();
      // Nor are there any number of threads that say so.
      if (one->refused && shared_->refusing >= limits_.connections) {
        ::close(socket);
        return;
      }
      shared_->open.push_back(one);
      shared_->refusing += one->refused ? 1 : 0;
    }
    try {
      std::thread([shared = shared_, one] {
        if (one->refused) {
          shared->messages.Refuse(one->socket, 503);
        } else {
          shared->messages.Serve(one->socket, one->waits);
        }
        Close(*shared, one);
      }).detach();
    } catch (const std::system_error&) {
      Close(*shared_, one);
    }
  }

  static void Close(Shared& shared, const std::shared_ptr<Connection>& one) {
    const std::lock_guard lock(shared.mutex);
    shared.open.remove(one);
    shared.refusing -= one->refused ? 1 : 0;
    ::close(one->socket);
    shared.changed.notify_all();
  }

  const HttpLimits limits_;
  const std::shared_ptr<Shared> shared_;
};

}  // namespace
}  // namespace lamina::serve

extern "C" __attribute__((visibility("default"))) lamina::serve::HttpServer*
LaminaOpenHttp(int interface, const lamina::serve::HttpLimits* limits,
               const lamina::serve::HttpHandler* handler) {
  if (interface != lamina::serve::kHttpPluginInterface) return nullptr;
  return new lamina::serve::Connections(*limits, *handler);
}
