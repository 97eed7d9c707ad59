// SPDX-License-Identifier: Apache-2.0
#include "dist/rank_times.h"

#include <filesystem>
#include <map>
#include <utility>

#include "base/escape.h"
#include "dist/job.h"

namespace lamina::dist {

Result<analysis::host::RankTimesOf> TimesAmongRanks(
    const analysis::Context& context, const std::string& file,
    const std::vector<std::string>& others, const LoadOptions& load) {
  std::vector<std::string> files = {file};
  for (const std::string& other : others) {
    std::error_code error;
    if (!std::filesystem::equivalent(file, other, error))
      files.push_back(other);
  }
  JobOptions options;
  options.load = load;
  const auto channel = MakeLocalChannel();
  const std::optional<Job> job = RunJob(*channel, files, options);
  std::map<int64_t, std::vector<analysis::Collective>> own;  // by rank
  const std::vector<Lanes> lanes = FindRanks(context);
  for (const RankSummary& rank : job->ranks) {
    if (!rank.error.empty()) return Fail(InputError(rank.file, rank.error));
    if (rank.file_number == 0 && rank.part < lanes.size())
      own[rank.rank] = CollectivesOf(context, lanes[rank.part]);
  }
  if (job->ranks.size() < 2) {
    return Fail(UsageError(
        "⟨ranks⟩: there is no rank beside that of " + EscapeTerminal(file),
        "give traces of other ranks of its job, or their folder"));
  }
  analysis::host::RankTimesOf out;
  for (const MeasuredCall& call : job->measured.calls) {
    if (!call.comparable()) continue;
    for (const MeasuredMember& member : call.members) {
      const auto calls = own.find(member.rank);
      if (calls == own.end() || member.call >= calls->second.size()) continue;
      const analysis::Collective& mine = calls->second[member.call];
      // Of a rank that is not there nobody knows whether it came last.
      if (mine.args != nullptr &&
          mine.args->group_size > static_cast<int64_t>(call.members.size()))
        continue;
      out[mine.slice] = {member.wait_ns, call.transfer_ns};
    }
  }
  return out;
}

}  // namespace lamina::dist
