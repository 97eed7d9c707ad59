// SPDX-License-Identifier: Apache-2.0
//
// Longer than most: the states of a trace and who may change them stand in one
// place, under one mutex.
#include "serve/store.h"

#include <algorithm>
#include <charconv>
#include <fcntl.h>
#include <filesystem>
#include <sodium.h>

#include "base/opened.h"
#include "engine/find_traces.h"
#include "mcp/protocol/message.h"
#include "serve/guard.h"

namespace lamina::serve {
namespace {

namespace fs = std::filesystem;
using mcp::Json;

constexpr int kOpeningAtOnce = 2;
constexpr size_t kMostTraces = 100'000;
constexpr size_t kMostComparisons = 64;
constexpr size_t kMostFacts = size_t{64} << 10;

HttpResponse Answer(const Json& json, int status = 200) {
  HttpResponse response;
  response.status = status;
  response.body = mcp::DumpText(json);
  return response;
}

HttpResponse NoSuchTrace() {
  return Problem(404, "not_found", "there is no such trace",
                 "GET /api/v1/traces lists them");
}

std::string Real(const std::string& path) {
  std::error_code error;
  const auto real = fs::canonical(path, error);
  return error ? std::string() : real.string();
}

bool IsPattern(const std::string& argument) {
  return argument.find_first_of("*?[\\") != std::string::npos;
}

// The folder below which a pattern looks: "runs" of "runs/*/rank?.json".
std::string FolderOf(const std::string& pattern) {
  const size_t slash = pattern.rfind('/', pattern.find_first_of("*?[\\"));
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : pattern.substr(0, slash);
}

// What stands before the names of an argument: the name of its folder.
std::string NameOf(const std::string& file, const std::string& argument) {
  std::error_code error;
  if (!fs::is_directory(argument, error))
    return fs::path(file).filename().string();
  const auto below = fs::path(file).lexically_relative(argument);
  const std::string folder = fs::path(Real(argument)).filename().string();
  return folder.empty() ? below.string() : folder + "/" + below.string();
}

}  // namespace

Result<std::unique_ptr<Store>> Store::Open(StoreOptions options) {
  std::unique_ptr<Store> store(new Store(std::move(options)));
  LAMINA_TRY(store->Look());
  store->watch_ = std::thread([raw = store.get()] { raw->Watch(); });
  return store;
}

Store::Store(StoreOptions options)
    : options_(std::move(options)), key_(crypto_generichash_KEYBYTES, '\0') {
  randombytes_buf(key_.data(), key_.size());
}

Store::~Store() { Stop(); }

std::string Store::IdOf(std::string_view text) const {
  // Of no use to guess paths from; of the same file the same while this runs.
  unsigned char digest[crypto_generichash_BYTES_MIN];
  crypto_generichash(
      digest, sizeof(digest),
      reinterpret_cast<const unsigned char*>(text.data()), text.size(),
      reinterpret_cast<const unsigned char*>(key_.data()), key_.size());
  std::string out(2 * sizeof(digest) + 1, '\0');
  sodium_bin2hex(out.data(), out.size(), digest, sizeof(digest));
  out.resize(24);
  return out;
}

Status Store::Look() {
  enum class From { kFolder, kPattern, kName };
  struct Found {
    std::string path;
    const std::string* argument = nullptr;
    From from;
  };
  std::vector<Found> found;
  std::vector<std::string> wholes;
  std::set<std::string> folders;
  for (const std::string& argument : options_.arguments) {
    LAMINA_ASSIGN(const auto files, engine::FindTracesAndSnapshots({argument}));
    std::error_code error;
    // A pattern stays one: somebody may make a link that is called so.
    const From from = IsPattern(argument)                 ? From::kPattern
                      : fs::is_directory(argument, error) ? From::kFolder
                                                          : From::kName;
    if (from == From::kPattern) wholes.push_back(Real(FolderOf(argument)));
    if (from == From::kFolder) {
      wholes.push_back(Real(argument));
      folders.insert(wholes.back());
    }
    for (const std::string& file : files)
      found.push_back({file, &argument, from});
  }
  const std::lock_guard lock(mutex_);
  std::vector<std::string> order;
  for (auto& [id, entry] : entries_) entry->listed = entry->comparison;
  for (const auto& root : roots_) root->whole = false;
  for (const std::string& whole : wholes) AddRoot(whole, true);
  left_out_ = 0;
  for (const auto& [path, argument, from] : found) {
    struct stat now {};
    const std::string real = Real(path);
    if (real.empty() || ::stat(real.c_str(), &now) != 0 ||
        !S_ISREG(now.st_mode) || order.size() >= kMostTraces)
      continue;
    const auto place = PlaceOf(real, from == From::kName);
    if (!place) {
      ++left_out_;
      continue;
    }
    if (from == From::kName || (from == From::kPattern && place->root->whole))
      folders.insert(fs::path(real).parent_path().string());
    const std::string id = IdOf(real);
    EntryPointer& entry = entries_[id];
    if (entry == nullptr) {
      entry = std::make_shared<Entry>();
      entry->id = id;
      entry->name = NameOf(path, *argument);
    } else if (entry->listed) {
      continue;  // named twice
    }
    entry->listed = true;
    entry->places = {*place};
    entry->file = now;
    order.push_back(id);
  }
  // What has gone is forgotten with its process.
  std::erase_if(entries_, [](const auto& one) {
    return !one.second->listed && one.second->worker == nullptr;
  });
  for (const std::string& id : order_) {
    const auto entry = Find(id);
    if (entry != nullptr && entry->comparison) order.push_back(id);
  }
  order_ = std::move(order);
  folders.erase("");  // removed meanwhile
  folders_ = std::move(folders);
  // So is a folder in which nothing is served any more.
  std::erase_if(roots_, [](const auto& root) {
    return !root->whole && root.use_count() == 1;
  });
  looked_ = std::chrono::steady_clock::now();
  return {};
}

void Store::LookAgain() {
  constexpr auto kLookAgain = std::chrono::seconds(2);
  {
    const std::lock_guard lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (now - looked_ <= kLookAgain) return;
    // Others need not look as well.
    looked_ = now;
  }
  // A folder that cannot be read now is as it was.
  (void)Look();
}

std::string Store::Place::path() const {
  return (root->path == "/" ? "" : root->path) + "/" + name;
}

std::shared_ptr<const Store::Root> Store::AddRoot(const std::string& path,
                                                  bool whole) {
  const auto root =
      std::find_if(roots_.begin(), roots_.end(),
                   [&](const auto& known) { return known->path == path; });
  struct stat now {
  }, then{};
  // A folder may be made anew.
  if (root != roots_.end() && ::stat(path.c_str(), &now) == 0 &&
      ::fstat((*root)->folder.get(), &then) == 0 && now.st_dev == then.st_dev &&
      now.st_ino == then.st_ino) {
    (*root)->whole |= whole;
    return *root;
  }
  Descriptor folder = HoldFolder(path);
  if (!folder.open()) return nullptr;
  if (root != roots_.end()) {
    whole |= (*root)->whole;
    return *root = std::make_shared<Root>(Root{path, std::move(folder), whole});
  }
  roots_.push_back(
      std::make_shared<Root>(Root{path, std::move(folder), whole}));
  return roots_.back();
}

std::optional<Store::Place> Store::PlaceOf(const std::string& real,
                                           bool named) {
  const auto below = [&](const std::shared_ptr<const Root>& root) {
    const std::string folder = root->path == "/" ? "/" : root->path + "/";
    return real.starts_with(folder)
               ? std::optional(Place{root, real.substr(folder.size())})
               : std::nullopt;
  };
  for (const auto& root : roots_) {
    if (!root->whole) continue;
    if (auto place = below(root)) return place;
  }
  if (!named && !options_.follow_links) return std::nullopt;
  const auto root = AddRoot(fs::path(real).parent_path().string(), false);
  return root == nullptr ? std::nullopt : below(root);
}

Store::EntryPointer Store::Find(const std::string& id) {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : found->second;
}

bool Store::IsStale(const Entry& entry) {
  if (!entry.comparison) return !IsSame(entry.file, entry.opened[0]);
  for (size_t i = 0; i < entry.compared.size(); ++i) {
    const auto one = Find(entry.compared[i]);
    if (one == nullptr || !one->listed || !IsSame(one->file, entry.opened[i]))
      return true;
  }
  return false;
}

Json Store::Describe(const Entry& entry) {
  static constexpr const char* kStates[] = {"closed", "waiting", "opening",
                                            "open", "failed"};
  Json out;
  out["id"] = entry.id;
  out["kind"] = entry.comparison ? "comparison" : "trace";
  out["name"] = entry.name;
  if (!entry.comparison) {
    const std::string file = fs::path(entry.places[0].name).filename().string();
    const size_t dot = file.find('.', 1);
    out["ending"] = dot == std::string::npos ? "" : file.substr(dot + 1);
    out["bytes"] = entry.file.st_size;
    out["changed_ms"] = entry.file.st_mtim.tv_sec * 1000;
  }
  if (entry.state == State::kOpen) out["stale"] = IsStale(entry);
  out["state"] = kStates[static_cast<int>(entry.state)];
  if (entry.state == State::kOpening) {
    out["done"] = entry.done;
    out["total"] = entry.total;
  }
  if (entry.state == State::kFailed) out["error"] = entry.error;
  if (!entry.facts.is_null()) out["facts"] = entry.facts;
  return out;
}

HttpResponse Store::List() {
  LookAgain();
  const std::lock_guard lock(mutex_);
  Json out;
  out["traces"] = Json::array();
  for (const std::string& id : order_) {
    if (const auto entry = Find(id)) out["traces"].push_back(Describe(*entry));
  }
  return Answer(out);
}

HttpResponse Store::Get(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto entry = Find(id);
  return entry == nullptr ? NoSuchTrace() : Answer(Describe(*entry));
}

HttpResponse Store::StartOpening(const std::string& id) {
  LookAgain();
  const std::lock_guard lock(mutex_);
  const auto entry = Find(id);
  if (entry == nullptr) return NoSuchTrace();
  if (entry->state == State::kOpen) {
    bool same = true;
    for (size_t i = 0; i < entry->places.size(); ++i) {
      struct stat now {};
      same = same && ::stat(entry->places[i].path().c_str(), &now) == 0 &&
             IsSame(now, entry->opened[i]);
    }
    if (same) {
      entry->used = ++clock_;
      return Answer(Describe(*entry));
    }
    End(*entry, State::kClosed, {});
  }
  if (entry->state != State::kWaiting && entry->state != State::kOpening) {
    entry->state = State::kWaiting;
    entry->turn = ++clock_;
    entry->done = entry->total = 0;
    OpenNext();
  }
  return Answer(Describe(*entry), 202);
}

void Store::OpenNext() {
  while (!stopped_ && opening_ < kOpeningAtOnce) {
    EntryPointer next;
    for (const auto& [id, entry] : entries_) {
      if (entry->state == State::kWaiting &&
          (next == nullptr || entry->turn < next->turn))
        next = entry;
    }
    if (next == nullptr) return;
    Begin(next);
  }
}

void Store::Begin(const EntryPointer& entry) {
  size_t open = 0;
  for (const auto& [id, one] : entries_) open += one->worker != nullptr ? 1 : 0;
  for (; open >= options_.sessions; --open) {
    const EntryPointer oldest = Oldest();
    if (oldest == nullptr) break;
    End(*oldest, State::kClosed, {});
  }
  // Its folder may have been made anew since the last time.
  std::vector<EntryPointer> of{entry};
  if (entry->comparison) of.clear();
  for (size_t i = 0; i < entry->compared.size(); ++i) {
    of.push_back(Find(entry->compared[i]));
    if (of[i] != nullptr) entry->places[i] = of[i]->places[0];
  }
  // What a link that has come since the last look leads to is not opened, nor
  // what takes this place while the process starts.
  std::vector<Descriptor> files;
  std::vector<int> numbers;
  std::vector<std::string> paths;
  entry->opened.clear();
  for (const Place& place : entry->places) {
    Descriptor file = OpenBeneath(place.root->folder, place.name);
    if (!file.open() ||
        ::fstat(file.get(), &entry->opened.emplace_back()) != 0) {
      entry->state = State::kFailed;
      entry->error = WhyNotOpened(errno);
      return;
    }
    // The last look at the folders may be older.
    if (const EntryPointer& one = of[files.size()])
      one->file = entry->opened.back();
    numbers.push_back(file.get());
    paths.push_back(place.path());
    files.push_back(std::move(file));
  }
  const uint64_t session = entry->session = ++clock_;
  const std::string page = PageOf(*entry);
  const std::weak_ptr<Entry> weak = entry;
  // Runs `change` with the entry, unless it was closed or opened anew.
  const auto with = [this, weak, session](const auto& change) {
    const std::lock_guard lock(mutex_);
    const EntryPointer held = weak.lock();
    if (held != nullptr && held->session == session) change(*held);
  };
  Worker::Events events;
  events.progress = [with](const std::string& text) {
    with([&](Entry& now) {
      const char* const end = text.data() + text.size();
      const auto [at, error] = std::from_chars(text.data(), end, now.done);
      if (error == std::errc() && at < end)
        std::from_chars(at + 1, end, now.total);
    });
  };
  events.opened = [this, with](int status, const std::string& body) {
    const auto facts = body.size() <= kMostFacts
                           ? Json::parse(body, nullptr, false)
                           : Json(Json::value_t::discarded);
    with([&](Entry& now) {
      // What is known of it later than its page.
      if (now.state == State::kOpen && status == 200 && facts.is_object())
        now.facts = facts;
      if (now.state != State::kOpening) return;
      if (status == 200 && facts.is_object()) {
        --opening_;
        now.state = State::kOpen;
        now.facts = facts;
        now.used = ++clock_;
        OpenNext();
        return;
      }
      const bool says = facts.is_object() && facts.contains("error") &&
                        facts["error"].is_string();
      End(now, State::kFailed,
          says ? facts["error"].get<std::string>()
               : "its process said something that is not understood");
      OpenNext();
    });
  };
  events.ended = [this, with, page](const std::string& why) {
    with([&](Entry& now) {
      if (now.worker != nullptr || now.state == State::kOpening)
        End(now, State::kFailed, why);
      OpenNext();
    });
    // Also what it had begun to write when it was killed.
    std::error_code error;
    for (fs::directory_iterator it(options_.folder, error), end;
         !error && it != end; it.increment(error)) {
      std::error_code ignored;
      if (it->path().string().starts_with(page))
        fs::remove(it->path(), ignored);
    }
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  };
  auto worker = Worker::Start(options_.worker_words(page, paths, numbers),
                              numbers, options_.memory_bytes, events);
  if (!worker) {
    entry->state = State::kFailed;
    entry->error = worker.error().what;
    return;
  }
  entry->worker = *std::move(worker);
  entry->state = State::kOpening;
  entry->facts = nullptr;
  ++opening_;
}

// Of one opening alone: the process of the one before may still write.
std::string Store::PageOf(const Entry& entry) const {
  return options_.folder + "/" + entry.id + "-" +
         std::to_string(entry.session) + ".html";
}

void Store::End(Entry& entry, State state, std::string error) {
  if (entry.state == State::kOpening) --opening_;
  entry.state = state;
  entry.error = std::move(error);
  entry.session = ++clock_;
  // Whether they come is of one process.
  if (entry.facts.is_object()) entry.facts.erase("findings");
  if (entry.worker != nullptr) entry.worker->Kill();
  entry.worker = nullptr;
}

HttpResponse Store::Close(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto entry = Find(id);
  if (entry == nullptr) return NoSuchTrace();
  End(*entry, State::kClosed, {});
  OpenNext();
  if (entry->comparison) {
    std::erase(order_, id);
    entries_.erase(id);
  }
  return Answer(Describe(*entry));
}

HttpResponse Store::Ask(const std::string& id, char kind,
                        const HttpRequest& request) {
  std::shared_ptr<Worker> worker;
  EntryPointer entry;
  {
    const std::lock_guard lock(mutex_);
    entry = Find(id);
    if (entry == nullptr) return NoSuchTrace();
    if (entry->state != State::kOpen)
      return Problem(409, "not_open", "the trace is not open", "open it first");
    worker = entry->worker;
    entry->used = ++clock_;
    ++entry->in_use;
  }
  std::string why;
  auto reply = worker->Ask(kind, request.body, request.gone, why);
  {
    const std::lock_guard lock(mutex_);
    --entry->in_use;
  }
  if (!reply) return Problem(500, "ended", why, "open the trace again");
  HttpResponse response;
  response.status =
      reply->status >= 200 && reply->status < 600 ? reply->status : 500;
  response.body = std::move(reply->body);
  return response;
}

HttpResponse Store::Page(const std::string& id) {
  std::string page;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = Find(id);
    if (entry == nullptr) return NoSuchTrace();
    if (entry->state != State::kOpen)
      return Problem(409, "not_open", "the trace is not open", "open it first");
    entry->used = ++clock_;
    page = PageOf(*entry);
  }
  HttpResponse response;
  response.file = Descriptor(
      ::open(page.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!response.file.open() || ::fstat(response.file.get(), &info) != 0 ||
      !S_ISREG(info.st_mode))
    return Problem(409, "not_open", "the page is gone", "open the trace again");
  response.file_bytes = static_cast<uint64_t>(info.st_size);
  // Never shown as a page of this server: the program of the page reads it.
  response.type = "application/octet-stream";
  return response;
}

HttpResponse Store::Compare(const std::string& a, const std::string& b) {
  std::string id;
  {
    const std::lock_guard lock(mutex_);
    const auto first = Find(a);
    const auto second = Find(b);
    if (first == nullptr || second == nullptr || first->comparison ||
        second->comparison)
      return NoSuchTrace();
    if (a == b)
      return Problem(400, "usage", "both are the same trace", "choose two");
    id = IdOf(first->places[0].path() + '\n' + second->places[0].path());
    if (Find(id) == nullptr) {
      const auto comparisons =
          std::count_if(entries_.begin(), entries_.end(),
                        [](const auto& one) { return one.second->comparison; });
      if (static_cast<size_t>(comparisons) >= kMostComparisons)
        return Problem(429, "busy", "too many comparisons are kept",
                       "close one of them");
      auto entry = std::make_shared<Entry>();
      entry->id = id;
      entry->comparison = true;
      entry->name = first->name + " \u2192 " + second->name;
      entry->places = {first->places[0], second->places[0]};
      entry->compared = {a, b};
      entries_[id] = entry;
      order_.push_back(id);
    }
  }
  return StartOpening(id);
}

Store::EntryPointer Store::Oldest() {
  EntryPointer oldest;
  for (const auto& [id, entry] : entries_) {
    if (entry->state == State::kOpen && entry->in_use == 0 &&
        (oldest == nullptr || entry->used < oldest->used))
      oldest = entry;
  }
  return oldest;
}

// Keeps the memory of all workers below the limit: first what nobody uses goes,
// then what needs most.
void Store::Watch() {
  constexpr auto kLook = std::chrono::milliseconds(300);
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    changed_.wait_for(lock, kLook);
    if (options_.memory_bytes == 0) continue;
    uint64_t sum = 0;
    uint64_t most = 0;
    size_t workers = 0;
    EntryPointer largest;
    for (const auto& [id, entry] : entries_) {
      if (entry->worker == nullptr) continue;
      ++workers;
      const uint64_t bytes = entry->worker->OwnBytes();
      sum += bytes;
      if (bytes > most) {
        most = bytes;
        largest = entry;
      }
    }
    if (sum <= options_.memory_bytes) continue;
    const EntryPointer oldest = Oldest();
    if (oldest != nullptr && workers > 1) {
      End(*oldest, State::kClosed, {});
    } else if (largest != nullptr) {
      End(*largest, State::kFailed,
          "it needs more memory than --memory-gb allows");
    }
    OpenNext();
  }
}

std::vector<std::string> Store::Folders() {
  const std::lock_guard lock(mutex_);
  return {folders_.begin(), folders_.end()};
}

size_t Store::LeftOut() {
  const std::lock_guard lock(mutex_);
  return left_out_;
}

void Store::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    for (auto& [id, entry] : entries_) {
      if (entry->worker != nullptr) End(*entry, State::kClosed, {});
    }
    changed_.notify_all();
  }
  if (watch_.joinable()) watch_.join();
}

}  // namespace lamina::serve
