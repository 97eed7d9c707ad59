// SPDX-License-Identifier: Apache-2.0
//
// A database of runs: one file of SQLite, or a server of PostgreSQL. Each run
// is added in one transaction after all of it was computed, so a writer that
// dies leaves nothing half done and others wait for milliseconds; the file has
// no second one beside it while nobody writes. Older stores are brought to the
// schema of this program when they are opened, files after a copy was made.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "runstore/record.h"

namespace lamina::runstore {

class Database;

// Version of the numbers: of other ones a trend is not made together.
inline constexpr int kAnalysis = 1;

// What is known of a run without its units.
struct Run {
  int64_t id = 0;
  std::string content, name, source, format;
  int64_t bytes = 0;
  std::optional<int64_t> recorded_ns, ordinal;
  int64_t added_ns = 0;
  std::string added_by;
  std::string key, model, device, type;
  int64_t devices = 0, ranks = 0;
  std::optional<int64_t> world;
  std::string lamina;  // version that added it
  int64_t analysis = 0;
  std::vector<ClassRecord> classes;
  Tags tags;

  // Of its recording, else of its adding, since 1970.
  int64_t TimeNs() const { return recorded_ns.value_or(added_ns); }
};

struct Baseline {
  std::string name;
  int64_t run = 0;
  std::string run_name;
  int64_t set_ns = 0;
  std::string set_by, reason;
  std::optional<int64_t> until_ns;  // nothing: it holds
};

// What somebody decided about a run that is slower, or not, than another one.
struct Decision {
  int64_t run = 0;
  std::string run_name;
  int64_t against = 0;
  std::string against_name;
  bool accepted = false;
  std::string reason, by;
  int64_t decided_ns = 0;
};

// One value of one run: of a class of units, or of a phase.
struct MetricRow {
  int64_t run = 0;
  std::string of;       // class or phase
  double value_ns = 0;  // per unit
  double share = 0;     // of the time of the run
};

// A pair `name=value` that runs must have among their tags, or as `name`,
// `device`, `key` or `format`.
using Where = std::vector<std::pair<std::string, std::string>>;

class Store {
 public:
  enum class Mode : uint8_t {
    kExisting,  // kInput where there is none
    kCreate,
  };
  // `path`: a file, or postgresql://[USER@]HOST/DATABASE. `schema`: for tests,
  // of an older program. Errors: kInput for a file that is no store, of a later
  // schema, or locked for 30 s, and for a server that cannot be reached.
  static Result<Store> Open(const std::string& path, Mode mode,
                            int schema = kNewest);
  static constexpr int kNewest = -1;

  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  // True: added; false: this content is in the store, and got the tags.
  Result<bool> Add(const Record& record, const std::string& by);

  // The parts of a run anew, of a record of the same content; its name, tags,
  // place and baselines stay.
  Status Replace(const Run& old, const Record& record);

  // In the order of a series: by ordinal, else by the time of recording, else
  // by that of adding; those with an ordinal first.
  Result<std::vector<Run>> Runs(const Where& where);
  // An id, a name (the newest of it), the first digits of a content, `latest`,
  // or `baseline:NAME`. Errors: kUsage when there is none.
  Result<Run> Find(const std::string& word);
  // A run for a comparison. Errors: it is damaged.
  Result<runs::KeptSide> SideOf(const Run& run);
  Result<Tags> EnvironmentOf(int64_t run);
  Result<std::vector<runs::Part>> PartsOf(int64_t run);
  // With modules and kernels.
  Result<runs::Account> AccountOf(int64_t run);

  // Values of a metric of all runs. Errors: kUsage for a name of no metric.
  Result<std::vector<MetricRow>> Values(const std::string& metric);

  Status SetBaseline(const std::string& name, const Run& run,
                     const std::string& by, const std::string& reason);
  // Errors: kUsage when no baseline of that name holds.
  Status EndBaseline(const std::string& name);
  // All that were ever set, by name, the newest first.
  Result<std::vector<Baseline>> Baselines();

  Status Decide(const Run& run, const Run& against, bool accepted,
                const std::string& by, const std::string& reason);
  // The newest first.
  Result<std::vector<Decision>> Decisions();
  // The newest about this pair; nothing: none.
  Result<std::optional<Decision>> DecisionOn(int64_t run, int64_t against);

  // Removes these runs; the file becomes smaller.
  Status Remove(const std::vector<int64_t>& runs);

  // The file, or the address without user and options.
  const std::string& path() const { return path_; }

 private:
  explicit Store(std::unique_ptr<Database> database);
  // `make`: where there is no store.
  Status Migrate(int to, bool make);
  Status InsertParts(int64_t run, const Record& record);
  // Of texts, which are added in their order where they are new.
  Result<std::map<std::string, int64_t>> NumbersOf(
      const std::set<std::string>& texts);

  std::string path_;
  std::unique_ptr<Database> database_;
};

// The file or address that `store` names: a path, "sqlite:PATH",
// "postgresql://...", or empty for that of LAMINA_STORE, else the user's own
// file. Errors: kUsage for an address with a password, which is not repeated.
Result<std::string> StorePath(std::string store);

// Nanoseconds since 1970 now; "2026-11-27T05:42:00Z" of such.
int64_t NowNs();
std::string DateText(int64_t ns);
// Of seconds since 1970 or a date like that; nothing for other texts.
std::optional<int64_t> ParseDate(std::string_view text);
// Who runs the program.
std::string UserName();

}  // namespace lamina::runstore
