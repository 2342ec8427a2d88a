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
// Context of a session for it: with less, the costs of long texts are unknown.
constexpr int kMeasureContext = 1152;
constexpr int kUsualContext = 384;  // with less, even those of short texts are less true

// Measures few points behind a short text, the cheapest first, as many as `budget_seconds` allow
// (at least one row of each curve), and fewer behind a long one, if the session has room for it. A
// point is the least time of several runs. The session forgets its sequence.
MeasuredCosts measure_costs(Session& session, CostAware& drafter, double budget_seconds);

// Corrects timings, which are too long if something else ran, and never too short: fewer rows cost
// no more than more rows, and a pass costs no more than several passes over fewer rows.
std::vector<CostPoint> plausible(std::vector<CostPoint> points);

// Whether a session has room for the long text.
bool has_room_for_long_text(const Session& session);

// The costs in `folder` under this key, which names everything that they depend on. A file that is
// damaged, has another key or holds impossible values counts as missing.
std::optional<MeasuredCosts> read_costs(const std::filesystem::path& folder,
                                        const std::string& key);
// Replaces the file as a whole or not at all; returns false if the folder cannot be written.
bool write_costs(const std::filesystem::path& folder, const std::string& key,
                 const MeasuredCosts& costs);
std::filesystem::path cost_file(const std::filesystem::path& folder, const std::string& key);

}  // namespace aerie
