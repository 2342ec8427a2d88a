// Measures the costs of a target pass and of a draft level, and keeps them in the user's cache
// folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/session.h"

namespace aerie {

constexpr double kMeasureSeconds = 0.9;  // budget at a start
constexpr int kMeasureContext = 384;     // context of a session for it; with less it is less true

// Measures few points behind a text of some length, the cheapest first, as many as `budget_seconds`
// allow (at least one row of each curve). A point is the least time of several runs. The session
// forgets its sequence.
MeasuredCosts measure_costs(Session& session, CostAware& drafter, double budget_seconds);

// Corrects timings, which are too long if something else ran, and never too short: fewer rows cost
// no more than more rows, and a pass costs no more than several passes over fewer rows.
std::vector<CostPoint> plausible(std::vector<CostPoint> points);

// The costs in `folder` under this key, which names everything that they depend on. A file that is
// damaged, has another key or holds impossible values counts as missing.
std::optional<MeasuredCosts> read_costs(const std::filesystem::path& folder,
                                        const std::string& key);
// Replaces the file as a whole or not at all; returns false if the folder cannot be written.
bool write_costs(const std::filesystem::path& folder, const std::string& key,
                 const MeasuredCosts& costs);
std::filesystem::path cost_file(const std::filesystem::path& folder, const std::string& key);

}  // namespace aerie
