// SPDX-License-Identifier: Apache-2.0
//
// What the rules with `over: ranks` find in the traces of all ranks of a job.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "dist/summarize.h"
#include "findings/findings.h"

namespace lamina::findings {

struct JobDiagnosis {
  Diagnosis diagnosis;  // of rules over ranks alone, with all findings
  // By position of the file: what these findings own of the events of its
  // trace, for Options::taken.
  std::vector<Ledger::EventTimes> taken;
  size_t ranks = 0;  // that could be read
};

// Reads the files (dist::RunJob) and runs the rules over the tables of `lamina
// ranks` and over these, all times in nanoseconds:
//   rank_calls   a collective of a rank: uid, call, rank, kind, process_group,
//                ranks, bytes, step, start_ns, dur_ns, exposed_ns (of dur_ns,
//                outside computation and calls that began before), imbalance
//                (largest over mean of what ranks put in or get), start_skew
//                (1: the first of its group, ten times as long as the median of
//                its like)
//   rank_waits   a share of the waiting in one, put down to a rank: uid, call,
//                rank, kind, start_ns, wait_ns, exposed_ns (of wait_ns, and of
//                the transfer what the late rank hides and this one does not),
//                saved_ns (what the call ends earlier if the late rank comes
//                with the one before it; at the rank that waits least, else 0),
//                even_saved_ns (the same, if what ranks put in were even and
//                their work since the call before in proportion), imbalance,
//                start_skew, late_rank, cause (compute, launch, previous),
//                cause_name
//   rank_work    a rank: rank, kernels, elements (of the inputs of its ops),
//                h2d_bytes, d2h_bytes, compute_ns, idle_ns, window_ns, and
//                against the middle of the other ranks more_compute_ns,
//                more_idle_ns, times_compute, times_work (kernels or elements)
// Facts are :ranks, :window_ns (mean), :total_ns (sum), :wait_ns,
// :pipeline_stages and :micro_batches (0: no pipeline).
JobDiagnosis DiagnoseJob(const std::vector<std::string>& files,
                         const dist::LoadOptions& load,
                         std::shared_ptr<const RuleSet> rules,
                         const Options& options);

// A rank that comes to a call: what it did since the call before, and how much
// it puts in.
struct Arrival {
  int64_t start_ns = 0;
  int64_t work_ns = 0;
  int64_t elements = 0;
};
// How much earlier the last of them would come if all put in the same. Work is
// taken to be a part that all have, one in proportion to the elements (a line
// of least squares), and what the rank deviates from both, which stays. 0 where
// more elements are not more work.
int64_t EvenSaved(std::span<const Arrival> arrivals);

}  // namespace lamina::findings
