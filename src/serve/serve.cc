// SPDX-License-Identifier: Apache-2.0
//
// lamina serve: a folder of traces in the browser, to the user of this machine
// alone.
//
// Longer than most: addresses, the token and the options are set up here, each
// once, and handed to src/serve.
#include "serve/serve.h"

#include <arpa/inet.h>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <netinet/in.h>
#include <sodium.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/byte_sink.h"
#include "base/byte_source.h"
#include "base/decimal.h"
#include "base/exit_status.h"
#include "base/leftovers.h"
#include "base/plugin.h"
#include "lamina/version.h"
#include "questions/compiled_input.h"
#include "render/html/page.h"
#include "serve/api.h"
#include "serve/mcp_relay.h"
#include "serve/trace_process.h"

namespace lamina::serve {
namespace {

Error CannotListen(const std::string& where) {
  return InputError(where, std::string("cannot listen: ") + strerror(errno),
                    "choose another --port, or 0 for a free one");
}

struct Listening {
  Descriptor socket;
  std::string address;  // for a browser, without what follows the #
};

Result<Listening> ListenOnPort(uint16_t port) {
  Listening out;
  out.socket = Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  // There is no option for another address.
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (!out.socket.open() ||
      ::setsockopt(out.socket.get(), SOL_SOCKET, SO_REUSEADDR, &on,
                   sizeof(on)) != 0 ||
      ::bind(out.socket.get(), any, size) != 0 ||
      ::listen(out.socket.get(), 128) != 0 ||
      ::getsockname(out.socket.get(), any, &size) != 0)
    return Fail(CannotListen("127.0.0.1:" + std::to_string(port)));
  out.address =
      "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/";
  return out;
}

Result<Listening> ListenOnSocket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return Fail(UsageError("--unix: the name is too long",
                           "the system allows 107 bytes"));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  Listening out;
  out.socket = Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  int made = -1;
  const auto bind = [&](const char*) {
    // The socket is of this user alone from its first moment.
    const mode_t before = ::umask(0177);
    made = ::bind(out.socket.get(), reinterpret_cast<sockaddr*>(&address),
                  sizeof(address));
    ::umask(before);
    return made;
  };
  // One that nobody listens on any more is left over from a run that was
  // killed.
  if (bind("") != 0 && errno == EADDRINUSE) {
    const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    struct stat info {};
    if (::connect(probe.get(), reinterpret_cast<sockaddr*>(&address),
                  sizeof(address)) != 0 &&
        errno == ECONNREFUSED && ::lstat(path.c_str(), &info) == 0 &&
        S_ISSOCK(info.st_mode)) {
      ::unlink(path.c_str());
      bind("");
    } else {
      errno = EADDRINUSE;
    }
  }
  if (made != 0 || ::listen(out.socket.get(), 128) != 0) {
    return Fail(
        InputError(path, std::string("cannot listen: ") + strerror(errno)));
  }
  out.address = "http://localhost/";
  return out;
}

// The token of a file, which is made when it is not there: of this user alone.
Result<std::string> TokenOf(const std::string& path) {
  if (path.empty()) return MakeToken();
  const Descriptor made(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (made.open()) {
    const std::string text = MakeToken() + "\n";
    if (::write(made.get(), text.data(), text.size()) !=
        static_cast<ssize_t>(text.size()))
      return Fail(InputError(path, "cannot be written"));
  } else if (errno != EEXIST) {
    return Fail(
        InputError(path, std::string("cannot be made: ") + strerror(errno)));
  }
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) ||
      (info.st_mode & 077) != 0 || info.st_uid != ::geteuid()) {
    return Fail(InputError(path, "others may read it",
                           "chmod 600, or give the name of a new file"));
  }
  LAMINA_ASSIGN(std::string text, ReadAll(path, 1000));
  while (text.ends_with('\n')) text.pop_back();
  if (!IsToken(text)) {
    return Fail(
        InputError(path, "holds no token", "remove it: a new one is made"));
  }
  return text;
}

// Before anything is begun: a program that is linked statically goes on as
// another one.
Result<HttpPluginEntry> LoadHttp() {
  const auto entry =
      LoadPlugin(kHttpPluginFile, kHttpPluginEntry, "lamina-mpi");
  if (!entry) {
    return Fail(UsageError("lamina serve: " + entry.error(),
                           "build lamina where libcpp-httplib-dev is "
                           "installed"));
  }
  return reinterpret_cast<HttpPluginEntry>(*entry);
}

Result<std::unique_ptr<HttpServer>> OpenHttp(HttpPluginEntry entry,
                                             const HttpHandler& handler) {
  const HttpLimits limits;
  std::unique_ptr<HttpServer> server(
      entry(kHttpPluginInterface, &limits, &handler));
  if (server == nullptr) {
    return Fail(UsageError(std::string("lamina serve: ") + kHttpPluginFile +
                               " is of another version",
                           "build the program and the plug-in together"));
  }
  return server;
}

// What answers agents, in the folders that are served.
std::vector<std::string> McpWords(const std::string& program,
                                  const std::vector<std::string>& folders,
                                  const Front& options, int threads) {
  std::vector<std::string> words = {
      program,        "mcp",
      "--threads",    std::to_string(threads),
      "--memory-gb",  std::to_string(options.memory_gb),
      "--time-limit", std::to_string(options.time_limit_s)};
  for (const std::string& folder : folders)
    words.insert(words.end(), {"--allow", folder});
  for (const std::string& capture : options.captures) {
    std::error_code error;
    const auto path = std::filesystem::absolute(capture, error);
    const bool folder = std::filesystem::is_directory(path, error);
    words.insert(words.end(),
                 {"--allow", (folder ? path : path.parent_path()).string(),
                  "--capture", path.string()});
  }
  return words;
}

}  // namespace

Result<int> Front::Run() const {
  const Front& options = *this;
  constexpr double kGigabyte = 1024.0 * 1024 * 1024;
  if (!options.worker_page.empty()) {
    std::vector<int> files;
    for (const std::string& number : options.worker_files)
      files.push_back(static_cast<int>(ParseInt(number).value_or(-1)));
    if (!files.empty() && files.size() != options.traces.size())
      return Fail(UsageError("--worker-files: one for each trace"));
    WorkerOptions worker;
    worker.page = options.worker_page;
    worker.traces = options.traces;
    worker.files = std::move(files);
    worker.time_limit = std::chrono::milliseconds(
        static_cast<int64_t>(options.time_limit_s * 1000));
    worker.page_mb = options.page_mb;
    worker.page_events = options.page_events;
    worker.compiled = options.compiled;
    worker.captures = options.captures;
    worker.threads = threads;
    worker.late_findings_bytes =
        static_cast<uint64_t>(options.late_findings_mb * 1e6);
    return RunServeWorker(worker);
  }
  // What cannot be read is told now, not when a trace is opened.
  LAMINA_TRY(questions::ReadCompiled(options.compiled).map([](const auto&) {}));
  if (sodium_init() < 0)
    return Fail(InputError("libsodium", "cannot be initialised"));
  LAMINA_ASSIGN(const HttpPluginEntry plugin, LoadHttp());
  std::error_code error;
  const std::string program =
      std::filesystem::read_symlink("/proc/self/exe", error).string();
  LAMINA_ASSIGN(const std::string token, TokenOf(options.token_file));
  LAMINA_ASSIGN(const Leftover folder, MakeTemporaryFolder());
  StoreOptions store_options;
  store_options.arguments =
      options.traces.empty() ? std::vector<std::string>{"."} : options.traces;
  store_options.folder = folder.path();
  store_options.sessions = static_cast<size_t>(options.sessions);
  store_options.memory_bytes =
      static_cast<uint64_t>(options.memory_gb * kGigabyte);
  store_options.follow_links = options.follow_links;
  store_options.worker_words = [&](const std::string& page,
                                   const std::vector<std::string>& opens,
                                   const std::vector<int>& files) {
    std::vector<std::string> words = {program,
                                      "serve",
                                      "--worker",
                                      page,
                                      "--threads",
                                      std::to_string(threads),
                                      "--time-limit",
                                      std::to_string(options.time_limit_s),
                                      "--page-mb",
                                      std::to_string(options.page_mb),
                                      "--page-events",
                                      std::to_string(options.page_events),
                                      "--late-findings-mb",
                                      std::to_string(options.late_findings_mb)};
    for (const int file : files)
      words.insert(words.end(), {"--worker-files", std::to_string(file)});
    for (const std::string& code : options.compiled)
      words.insert(words.end(), {"--compiled", code});
    for (const std::string& capture : options.captures)
      words.insert(words.end(), {"--capture", capture});
    words.insert(words.end(), opens.begin(), opens.end());
    return words;
  };
  LAMINA_ASSIGN(auto opened, Store::Open(std::move(store_options)));
  // Never taken down: threads that wait for processes may outlive this.
  Store& store = *opened.release();
  if (const size_t left_out = store.LeftOut(); left_out > 0) {
    std::fprintf(stderr,
                 "lamina: %zu traces are outside of the folders, where links "
                 "lead; --follow-symlinks lists them\n",
                 left_out);
  }
  Guard guard(token, options.hosts);
  ApiOptions api;
  api.version = std::string(Version());
  api.library_page = render::LivePage(render::LiveProgram::kLibrary, {});
  api.trace_page = [](const std::string& data) {
    return render::LivePage(render::LiveProgram::kTrace, data);
  };
  api.memory_page = [](const std::string& data) {
    return render::LivePage(render::LiveProgram::kMemory, data);
  };
  const auto relay = std::make_shared<McpRelay>(
      McpWords(program, store.Folders(), options, threads),
      static_cast<uint64_t>(options.memory_gb * kGigabyte));
  if (!options.no_mcp && !store.Folders().empty()) {
    api.mcp = [relay](const HttpRequest& request) {
      return relay->Answer(request);
    };
  }
  LAMINA_ASSIGN(const auto http,
                OpenHttp(plugin, MakeApi(std::move(api), guard, store)));
  LAMINA_ASSIGN(const Listening listening,
                options.unix_socket.empty()
                    ? ListenOnPort(static_cast<uint16_t>(options.port))
                    : ListenOnSocket(options.unix_socket));
  std::array<int, 2> stop{};
  if (::pipe2(stop.data(), O_CLOEXEC) != 0)
    return Fail(InputError("a pipe", "cannot be made"));
  TellOfStop(stop[1]);
  std::printf("%s#token=%s\n", listening.address.c_str(), token.c_str());
  std::fflush(stdout);
  http->Run(listening.socket.get(), stop[0]);
  store.Stop();
  relay->Stop();
  if (!options.unix_socket.empty()) ::unlink(options.unix_socket.c_str());
  // Threads of handlers may still be on their way.
  RemoveLeftovers();
  _exit(kFine);
}

void Front::Describe(questions::Description& args, int& thread_count) {
  using questions::Group;
  args.Add("trace", traces,
           "Traces, folders of traces and patterns (default: the current "
           "folder)")
      .Count(0, 1000);
  args.Add("--port", port, "Port on 127.0.0.1; 0: a free one")
      .Whole(0, 65535)
      .ShowDefault()
      .In(Group::kGeneral);
  args.Add("--unix", unix_socket,
           "Listens on a Unix socket of this name instead")
      .ValueName("FILE")
      .In(Group::kGeneral);
  args.Add("--host", hosts,
           "Another name that a browser may use for this server, behind a "
           "tunnel; may be repeated")
      .OneWord()
      .ValueName("NAME")
      .In(Group::kGeneral);
  args.Add("--token-file", token_file,
           "Keeps the token of the address in this file, made if it is not "
           "there (default: a new token each time)")
      .ValueName("FILE")
      .In(Group::kGeneral);
  args.Add("--sessions", sessions,
           "Traces that are open at a time; above, those that were not asked "
           "for longest are closed")
      .Whole(1, 1000)
      .ShowDefault()
      .In(Group::kGeneral);
  args.Add("--memory-gb", memory_gb,
           "Memory of all open traces together; above, traces are closed")
      .Within(0.01, 1e6)
      .ShowDefault()
      .In(Group::kGeneral);
  args.Add("--time-limit", time_limit_s, "Seconds after which a query ends")
      .Within(0.001, 1e6)
      .ShowDefault()
      .In(Group::kGeneral);
  args.Add("--page-mb", page_mb,
           "Size above which the page of a trace leaves out detail, in MB")
      .Within(0.001, 2000)
      .ShowDefault()
      .In(Group::kPage);
  args.Add("--page-events", page_events,
           "Device events above which the page of a trace holds only some; "
           "its timeline and filters ask for the others")
      .Whole(1, 100'000'000)
      .ShowDefault()
      .In(Group::kPage);
  questions::AddCompiledTo(args, compiled);
  args.Add(
          "--capture", captures,
          "Traces in which the replayed graphs of all traces were captured, or "
          "a folder of them; may be repeated")
      .OneWord();
  args.Flag("--no-mcp", no_mcp, "Without the Model Context Protocol under /mcp")
      .In(Group::kGeneral);
  args.Add("--threads", thread_count,
           "Threads that read a trace (default: all cores)")
      .Whole(1, 256);
  args.Flag("--follow-symlinks", follow_links,
            "Also traces outside of the folders, to which links in them lead")
      .In(Group::kGeneral);
  args.Add("--late-findings-mb", late_findings_mb,
           "Size of a trace above which its page is there before its findings")
      .Within(0, 1e9)
      .In(Group::kHidden);
  args.Add("--worker", worker_page,
           "The process that has a trace open, and the page that it writes")
      .In(Group::kHidden);
  args.Add("--worker-files", worker_files,
           "The open files that such a process reads")
      .OneWord()
      .In(Group::kHidden);
}

}  // namespace lamina::serve
