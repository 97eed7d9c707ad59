// SPDX-License-Identifier: Apache-2.0
//
// The traces that may be opened, and those that are: each by a process of its
// own, so that none of them can end the server or see another one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <vector>

#include "mcp/protocol/tool.h"
#include "serve/http.h"
#include "serve/worker.h"

namespace lamina::serve {

struct StoreOptions {
  // Folders, files and patterns.
  std::vector<std::string> arguments;
  // Those that open traces: given the page to write, the traces and the number
  // of the open file of each, they speak as worker.h has it.
  std::function<std::vector<std::string>(const std::string& page,
                                         const std::vector<std::string>& traces,
                                         const std::vector<int>& files)>
      worker_words;
  // Also what links in the folders lead to outside of them.
  bool follow_links = false;
  // A folder of this process alone.
  std::string folder;
  size_t sessions = 16;       // that are open at a time
  uint64_t memory_bytes = 0;  // of all of them
};

class Store {
 public:
  // Errors: arguments that name nothing.
  static Result<std::unique_ptr<Store>> Open(StoreOptions options);
  ~Store();

  // All traces and comparisons.
  HttpResponse List();
  HttpResponse Get(const std::string& id);
  // Begins to open; what is open or on its way stays so.
  HttpResponse StartOpening(const std::string& id);
  // Also ends the opening.
  HttpResponse Close(const std::string& id);
  // A question to its process, of a kind of Frame.
  HttpResponse Ask(const std::string& id, char kind,
                   const HttpRequest& request);
  HttpResponse Page(const std::string& id);
  // Of two traces; opens it.
  HttpResponse Compare(const std::string& a, const std::string& b);

  // Real folders of what is served, for who opens files by itself: those that
  // were named, and those in which named files and files of patterns are.
  std::vector<std::string> Folders();
  // Traces that were found and are not served: links lead out to them.
  size_t LeftOut();
  // Ends all processes.
  void Stop();

 private:
  enum class State { kClosed, kWaiting, kOpening, kOpen, kFailed };
  // A folder that is held from its first look on.
  struct Root {
    std::string path;  // without links
    Descriptor folder;
    // Whatever is found below it is served; else files that were named or that
    // links lead to.
    bool whole = false;
  };
  // A file below one.
  struct Place {
    std::shared_ptr<const Root> root;
    std::string name;
    std::string path() const;
  };
  struct Entry {
    std::string id;
    bool comparison = false;
    std::string name;                   // for people
    std::vector<Place> places;          // one, or the two that are compared
    std::vector<std::string> compared;  // their ids
    struct stat file {};                // of a trace, when it was seen
    std::vector<struct stat> opened;    // per place, when it was opened
    bool listed = true;                 // by the last look at the folders
    State state = State::kClosed;
    uint64_t turn = 0;  // of those that wait, the least is first
    uint64_t done = 0, total = 0;
    std::string error;
    mcp::Json facts;
    std::shared_ptr<Worker> worker;
    uint64_t session = 0;  // of its opening: what came late is dropped
    uint64_t used = 0;
    int in_use = 0;
  };
  using EntryPointer = std::shared_ptr<Entry>;

  explicit Store(StoreOptions options);
  Status Look();
  // Unless somebody did a moment ago.
  void LookAgain();
  // All below: with mutex_ held.
  // Where a real path stands; none: outside of all folders, and neither named
  // nor to be followed to.
  std::optional<Place> PlaceOf(const std::string& real, bool named);
  // Also where a folder was made anew under this path.
  std::shared_ptr<const Root> AddRoot(const std::string& path, bool whole);
  EntryPointer Find(const std::string& id);
  // Whether what is open is no longer what the last look at the folders saw.
  bool IsStale(const Entry& entry);
  mcp::Json Describe(const Entry& entry);
  void OpenNext();
  void Begin(const EntryPointer& entry);
  std::string PageOf(const Entry& entry) const;
  // Ends its process. OpenNext() may then have room.
  void End(Entry& entry, State state, std::string error);
  // The open trace that nobody uses and was not asked for longest; null: none.
  EntryPointer Oldest();
  void Watch();

  std::string IdOf(std::string_view text) const;

  StoreOptions options_;
  std::string key_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Root>> roots_;
  std::set<std::string> folders_;
  size_t left_out_ = 0;
  std::map<std::string, EntryPointer> entries_;
  std::vector<std::string> order_;  // of traces, then comparisons
  std::chrono::steady_clock::time_point looked_{};
  uint64_t clock_ = 0;
  int opening_ = 0;
  bool stopped_ = false;
  std::thread watch_;
};

}  // namespace lamina::serve
