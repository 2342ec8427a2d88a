// Measures points in ascending order of cost. A cache file is a small JSON file, which is read
// strictly.
#include "engine/costs.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

#include "core/error.h"
#include "core/hash.h"
#include "core/replaced_file.h"
#include "core/saved.h"
#include "io/input_file.h"
#include "io/json.h"

namespace aerie {

namespace fs = std::filesystem;

namespace {

constexpr int kRounds = 12;  // rounds over the points, so that a busy moment spoils none
// Runs of a point follow each other for so long, as cycles do. A processor that computes more
// lowers its clock within some ten milliseconds, so only the second half counts.
constexpr double kPassesSeconds = 0.04, kLevelsSeconds = 0.01;
constexpr int kUsualRows = 8;  // rounds after the first leave out larger passes
// Passes are timed behind a text of as many tokens as are read in this time.
constexpr double kReadSeconds = 0.15;
constexpr int kLeastText = 16;  // a shorter text is not worth its time
constexpr int kMaxText = 192;
constexpr int kLongText = 1024;     // positions of the long text, which is not run
constexpr double kLongShare = 0.5;  // time for passes behind it, as a part of the budget
constexpr double kMaxSeconds = 3600;
constexpr size_t kMaxFileBytes = 1 << 16;

// Every row has a different token, spread over the vocabulary. Rows of one token would go to the
// same experts, so a pass with more of them would not read more weights.
int token_of(Session& session, int row) {
    const int vocab = session.logits().cols, step = std::max(1, vocab / kMaxNodes);
    return int(int64_t(row) * step % vocab);
}

double verify_seconds(Session& session, int rows) {
    TokenTree tree(0);
    while (tree.size() < rows) tree.add(token_of(session, tree.size()), 0);
    const double before = session.seconds().target();
    session.verify(tree);
    return session.seconds().target() - before;
}

// Times the points of a curve repeatedly, and keeps the least time of each.
class CurveTimer {
  public:
    CurveTimer(double seconds, std::function<double(int)> run)
        : seconds_(seconds), run_(std::move(run)) {}

    void add(int rows) { points_.push_back({rows, least(rows)}); }
    void clear() { points_.clear(); }
    // The sum of the points of few rows.
    double total() const {
        double seconds = 0;
        for (const CostPoint& point : points_)
            if (point.rows <= kUsualRows) seconds += point.seconds;
        return seconds;
    }
    // Repeats the points of few rows. Returns the sum of the least times of this round.
    double repeat() {
        double round = 0;
        for (CostPoint& point : points_) {
            if (point.rows > kUsualRows) break;
            const double seconds = least(point.rows);
            round += seconds;
            point.seconds = std::min(point.seconds, seconds);
        }
        return round;
    }
    const CostPoint& last() const { return points_.back(); }
    bool is_empty() const { return points_.empty(); }
    // Upper bound on the time that a point with twice the rows takes.
    double next_seconds() const { return std::max(seconds_, 2 * points_.back().seconds); }
    std::vector<CostPoint> points() const { return plausible(points_); }

  private:
    double least(int rows) const {
        const double start = steady_seconds();
        double seconds = run_(rows), passed = 0;
        bool counts = false;  // whether the first half is over
        while ((passed = steady_seconds() - start) < seconds_) {
            const double now = run_(rows);
            seconds = counts ? std::min(seconds, now) : now;
            counts = counts || passed > seconds_ / 2;
        }
        return seconds;
    }

    double seconds_;  // time for the runs of a point
    std::function<double(int)> run_;
    std::vector<CostPoint> points_;
};

// The median divided by the minimum.
double spread_of(std::vector<double> rounds) {
    std::sort(rounds.begin(), rounds.end());
    return rounds[rounds.size() / 2] / rounds.front();
}

// Points by ascending rows, whose seconds do not fall and are `least` at least.
std::optional<std::vector<CostPoint>> parse_rising(const Json* json, double least) {
    if (!json || !json->array() || json->array()->size() > size_t(kMaxNodes)) return std::nullopt;
    std::vector<CostPoint> points;
    for (const Json& item : *json->array()) {
        int64_t rows = 0;
        if (!item.array() || item.array()->size() != 2 || !item.array()->at(0).integer(rows) ||
            rows > kMaxNodes || rows <= (points.empty() ? 0 : points.back().rows))
            return std::nullopt;
        const double seconds = item.array()->at(1).number();
        if (!(seconds >= (points.empty() ? least : points.back().seconds) &&
              seconds <= kMaxSeconds))
            return std::nullopt;
        points.push_back({int(rows), seconds});
    }
    return points;
}

std::optional<std::vector<CostPoint>> parse_points(const Json* json) {
    const auto points = parse_rising(json, 1e-9);
    if (!points || points->empty()) return std::nullopt;
    const std::vector<CostPoint> expected = plausible(*points);
    const bool same = std::equal(
        points->begin(), points->end(), expected.begin(),
        [](const CostPoint& a, const CostPoint& b) { return a.seconds <= b.seconds * (1 + 1e-9); });
    return same ? points : std::nullopt;
}

Json json_points(const std::vector<CostPoint>& points) {
    Json::Array array;
    for (const CostPoint& point : points) array.push_back(Json::Array{point.rows, point.seconds});
    return array;
}

}  // namespace

std::vector<CostPoint> plausible(std::vector<CostPoint> points) {
    for (size_t i = points.size(); i-- > 1;)
        points[i - 1].seconds = std::min(points[i - 1].seconds, points[i].seconds);
    for (size_t i = 1; i < points.size(); ++i) {
        const CostPoint& fewer = points[i - 1];
        const int passes = (points[i].rows + fewer.rows - 1) / fewer.rows;
        points[i].seconds = std::min(points[i].seconds, passes * fewer.seconds);
    }
    return points;
}

namespace {

// Reads a text as chats have it: a further row costs more behind it, since it attends to all of it.
// False: that would take too long. `pass_seconds`: time of a pass over one row.
bool read_text(Session& session, double pass_seconds, double budget_seconds) {
    constexpr double kRowsOfPass = 4;  // rows of a prompt that are read in the time of one pass
    const double most = kRowsOfPass * std::min(kReadSeconds, budget_seconds / 4) / pass_seconds;
    const double room = std::min(session.context() / 2, kMaxText);
    if (std::min(most, room) < kLeastText) return false;
    std::vector<int> text(size_t(std::min(most, room)));
    for (size_t i = 0; i < text.size(); ++i) text[i] = token_of(session, int(i));
    session.begin({});
    session.prefill(text);
    return true;
}

class Zeros final : public SaveSource {
  public:
    void read(std::span<std::byte> out) override { std::fill(out.begin(), out.end(), std::byte{}); }
    void fail(const std::string& why) const override { throw Error(why); }
};

// Makes a text of kLongText positions whose keys and values are zeros: passes behind it take as
// long as behind any other text. False: the session has no room for it.
bool place_long_text(Session& session) {
    if (!has_room_for_long_text(session)) return false;
    const std::vector<int> tokens(size_t(kLongText) + 1);
    Sequence& sequence = session.sequence();
    sequence.restore(tokens);
    Zeros zeros;
    sequence.pages().load(zeros, kLongText);
    sequence.commit(kLongText);
    return true;
}

// The time that each position beyond `keys` adds to the passes of `verify`.
std::vector<CostPoint> measure_per_key(Session& session, CurveTimer& timer,
                                       const std::vector<CostPoint>& verify, int keys,
                                       double budget_seconds) {
    if (!place_long_text(session)) return {};
    const CostCurve known(verify);
    const double start = steady_seconds();
    for (const CostPoint& point : verify) {
        const double spent = steady_seconds() - start;
        if (!timer.is_empty() && spent + timer.next_seconds() > budget_seconds) break;
        timer.add(point.rows);
    }
    std::vector<CostPoint> points;
    for (const CostPoint& point : timer.points()) {
        const double more = point.seconds - known.at(point.rows);
        const double least = points.empty() ? 0 : points.back().seconds;
        points.push_back({point.rows, std::max(more / (kLongText - keys), least)});
    }
    return points;
}

}  // namespace

bool has_room_for_long_text(const Session& session) {
    return session.context() >= kLongText + kMaxNodes;
}

MeasuredCosts measure_costs(Session& session, CostAware& drafter, double budget_seconds) {
    session.begin({});
    const int token = 0;
    session.prefill({&token, 1});  // weights that are only mapped are read here, outside the budget
    const double start = steady_seconds();
    const auto spent = [&] { return steady_seconds() - start; };
    CurveTimer verify(kPassesSeconds, [&](int rows) { return verify_seconds(session, rows); });
    CurveTimer level(kLevelsSeconds, [&](int rows) {
        return drafter.level_seconds({session.sequence().draft(), session.sequence().tokens()},
                                     rows);
    });
    verify.add(1);
    if (read_text(session, verify.last().seconds, budget_seconds)) {
        verify.clear();
        verify.add(1);
    }
    level.add(1);
    const int most = session.logits().rows;  // most rows of a tree of this drafter
    for (int rows : {2, 3, 4, 8, 16, 32, kMaxNodes}) {
        const int width = std::min(rows, drafter.widest_level());
        if (width > level.last().rows && spent() + level.next_seconds() < budget_seconds)
            level.add(width);
        if (rows = std::min(rows, most);
            rows > verify.last().rows && spent() + verify.next_seconds() < budget_seconds)
            verify.add(rows);
    }
    std::vector<double> rounds = {verify.total() + level.total()};
    // The first round took longer than the others will, for it had large passes, too.
    double round_seconds = std::min(spent(), budget_seconds / 3);
    while (int(rounds.size()) < kRounds && spent() + round_seconds < budget_seconds) {
        const double before = spent(), passes = verify.repeat();
        rounds.push_back(passes + level.repeat());
        round_seconds = spent() - before;
    }
    MeasuredCosts costs{verify.points(), level.points(), false, spread_of(std::move(rounds))};
    costs.keys = session.committed();
    verify.clear();
    costs.per_key =
        measure_per_key(session, verify, costs.verify, costs.keys, kLongShare * budget_seconds);
    session.begin({});
    return costs;
}

fs::path cost_file(const fs::path& folder, const std::string& key) {
    char name[40];
    std::snprintf(name, sizeof(name), "costs-%016llx.json",
                  static_cast<unsigned long long>(fnv1a(key)));
    return folder / name;
}

std::optional<MeasuredCosts> read_costs(const fs::path& folder, const std::string& key) {
    try {
        const fs::path file = cost_file(folder, key);
        const Json json = Json::parse(read_text(file, kMaxFileBytes), file.string());
        const Json *schema = json.find("schema"), *stored = json.find("key");
        if (!schema || !schema->string() || *schema->string() != "aerie-costs-3" || !stored ||
            !stored->string() || *stored->string() != key)
            return std::nullopt;
        const auto verify = parse_points(json.find("verify")),
                   level = parse_points(json.find("level")),
                   per_key = parse_rising(json.find("per_key"), 0);
        int64_t keys = -1;
        if (const Json* stored_keys = json.find("keys")) stored_keys->integer(keys);
        if (!verify || !level || !per_key || keys < 0 || keys > kLongText ||
            verify->front().rows != 1 || level->front().rows != 1)
            return std::nullopt;
        MeasuredCosts costs{*verify, *level};
        costs.keys = int(keys);
        costs.per_key = *per_key;
        return costs;
    } catch (const Error&) {
        return std::nullopt;
    }
}

bool write_costs(const fs::path& folder, const std::string& key, const MeasuredCosts& costs) {
    const Json json(Json::Object{{"schema", "aerie-costs-3"},
                                 {"key", key},
                                 {"verify", json_points(costs.verify)},
                                 {"level", json_points(costs.level)},
                                 {"keys", costs.keys},
                                 {"per_key", json_points(costs.per_key)}});
    try {
        fs::create_directories(folder);
        ReplacedFile(cost_file(folder, key)).commit(json.dump() + "\n");
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

}  // namespace aerie
