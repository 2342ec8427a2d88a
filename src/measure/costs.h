// Measures what a target pass and a draft level cost, and remembers it in the user's cache folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/session.h"

namespace aerie {

constexpr double kMeasureSeconds = 0.9;  // what a start may take

// Few points, the cheapest first, as many as `budget_seconds` allow (of each curve at least one
// row); each is the least of some runs. The session forgets its sequence.
MeasuredCosts measure_costs(Session& session, CostAware& drafter, double budget_seconds);

// What timings say together that are too long where something else ran, and never too short: fewer
// rows cost no more than more rows do, and a pass no more than several of fewer rows.
std::vector<CostPoint> plausible(std::vector<CostPoint> points);

// Costs in `folder` under this key, which tells all that they depend on. A file that is damaged or
// of another key, or holds what cannot be, is as good as none.
std::optional<MeasuredCosts> read_costs(const std::filesystem::path& folder,
                                        const std::string& key);
// Replaces the file at once or not at all; false where the folder cannot be written.
bool write_costs(const std::filesystem::path& folder, const std::string& key,
                 const MeasuredCosts& costs);
std::filesystem::path cost_file(const std::filesystem::path& folder, const std::string& key);

}  // namespace aerie
