// SPDX-License-Identifier: Apache-2.0
//
// `lamina report` as a function of an opened trace.
#pragma once

#include "engine/session.h"
#include "lamina/engine.h"

namespace lamina::engine {

// What the analyses of a report are told.
analysis::Settings SettingsOf(const ReportOptions& options);

// How the tree of lamina's own tables joins launches.
tree::LinkMode LinkOf(const ReportOptions& options);

// How the layouts of TraceLens join launches (`link` as in ReportOptions): by
// flows where there are any, which is all that tool knows.
tree::LinkMode LayoutLink(const std::string& link, const trace::Trace& trace);

// What a report asks of the session that it is made from.
void SetUp(OpenOptions& open, const ReportOptions& options);

// kUsage for a name that is none of these tables: before the work of a command
// whose tables are known.
Status CheckOnly(const std::vector<std::string>& only,
                 const std::vector<std::string>& tables);

// Keeps the tables of these names, and the notes that they prove; all without
// names. Errors: kUsage for a name that no table has.
Status KeepOnly(ResultSet& result, const std::vector<std::string>& only);

// A report without options, made once for a session.
Result<std::shared_ptr<const ResultSet>> KeptReport(Session& session,
                                                    const Watch& watch = {});

// `options.threads` must be set.
Result<Document> MakeReport(Session& session, const ReportOptions& options,
                            StageTimes* times, const Watch& watch = {});

}  // namespace lamina::engine
