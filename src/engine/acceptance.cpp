// Reading is strict: a record that is not consistent would measure nonsense.
#include "engine/acceptance.h"

#include <algorithm>

#include "core/error.h"
#include "core/rng.h"
#include "draft/grow.h"
#include "engine/accept.h"
#include "io/input_file.h"
#include "io/json.h"

namespace aerie {

namespace {

constexpr size_t kMaxFileBytes = 16 << 20;
constexpr size_t kMaxCycles = 100'000, kMaxRecordedNodes = 1024;
constexpr int kMaxHundredths = 100'000;
const TreeShape kPaperShape{60, 6, 10};

class Reader {
  public:
    explicit Reader(std::string file) : file_(std::move(file)) {}

    AcceptanceRecord read(const Json& json) {
        const Json* schema = json.find("schema");
        if (!schema || !schema->string() || *schema->string() != "aerie-acceptance-1")
            refuse("no acceptance record of schema aerie-acceptance-1");
        AcceptanceRecord record;
        const Json* tau = json.find("tau");
        record.tau = tau ? tau->number() : 0;
        if (!(record.tau >= 1 && record.tau <= kMaxDepth + 1)) refuse("'tau' is missing or wrong");
        const Json* cycles = json.find("cycles");
        if (!cycles || !cycles->array() || cycles->array()->empty() ||
            cycles->array()->size() > kMaxCycles)
            refuse("'cycles' must be a list of 1 to " + std::to_string(kMaxCycles));
        for (const Json& cycle : *cycles->array()) record.cycles.push_back(read_cycle(cycle));
        return record;
    }

  private:
    [[noreturn]] void refuse(const std::string& what) const { throw Error(file_ + ": " + what); }

    int number(const Json& json, int low, int high) const {
        int64_t value = 0;
        if (!json.integer(value) || value < low || value > high)
            refuse("a number from " + std::to_string(low) + " to " + std::to_string(high) +
                   " was expected, not " + json.dump().substr(0, 40));
        return int(value);
    }

    RecordedCycle read_cycle(const Json& json) const {
        RecordedCycle cycle;
        if (!json.array() || json.array()->empty() || json.array()->size() > kMaxRecordedNodes)
            refuse("a cycle must be a list of 1 to " + std::to_string(kMaxRecordedNodes) +
                   " nodes");
        for (const Json& item : *json.array()) {
            RecordedNode node = read_node(item, int(cycle.size()));
            if (node.parent >= 0) {
                int& place = cycle[size_t(node.parent)].child_of_rank[size_t(node.rank)];
                if (place >= 0) refuse("a node stands there twice");
                place = int(cycle.size());
            }
            cycle.push_back(std::move(node));
        }
        check_truth(cycle);
        return cycle;
    }

    // [parent, rank, truth, log-probabilities in negative hundredths ...]
    RecordedNode read_node(const Json& json, int index) const {
        if (!json.array() || json.array()->size() < 3 ||
            json.array()->size() > size_t(3 + kMaxTopK))
            refuse("a node must be a list of 3 to " + std::to_string(3 + kMaxTopK) + " numbers");
        const Json::Array& items = *json.array();
        RecordedNode node;
        const bool root = index == 0;
        node.parent = number(items[0], root ? -1 : 0, index - 1);
        node.rank = number(items[1], root ? -1 : 0, root ? -1 : kMaxTopK - 1);
        node.truth = number(items[2], -1, kMaxTopK - 1);
        for (size_t i = 3; i < items.size(); ++i)
            node.log_probs.push_back(float(number(items[i], 0, kMaxHundredths)) / -100);
        node.child_of_rank.assign(kMaxTopK, -1);
        return node;
    }

    // Only the true continuation can have a true continuation.
    void check_truth(const RecordedCycle& cycle) const {
        std::vector<bool> is_true(cycle.size());
        is_true[0] = true;
        for (size_t i = 0; i < cycle.size(); ++i) {
            const RecordedNode& node = cycle[i];
            if (i > 0)
                is_true[i] =
                    is_true[size_t(node.parent)] && cycle[size_t(node.parent)].truth == node.rank;
            if (node.truth >= 0 && !is_true[i]) refuse("a true node below one that is not");
        }
    }

    std::string file_;
};

// The same number in [0, 1) for the same place.
double draw(size_t cycle, int depth) {
    return double(philox(0, {uint32_t(cycle), uint32_t(depth), 0, 0})[0]) / 4294967296.0;
}

}  // namespace

AcceptanceRecord read_acceptance(const std::filesystem::path& path) {
    const std::string file = path.string();
    return Reader(file).read(Json::parse(read_text(path, kMaxFileBytes), file));
}

// Rank of the true child below a place at this depth.
int ForcedAcceptance::truth(const Place& place, int depth) const {
    if (!place.is_true) return -1;
    const int recorded = place.node >= 0 ? record_.cycles[cycle_][size_t(place.node)].truth : -1;
    if (shift_ < 0 && draw(cycle_, depth) < -shift_) return -1;
    if (shift_ > 0 && recorded != 0 && draw(cycle_, depth) < shift_) return 0;
    return recorded;
}

ForcedAcceptance::Place ForcedAcceptance::child(const Place& parent, int rank, int truth) const {
    Place place;
    place.is_true = rank == truth;
    if (parent.node >= 0)
        place.node = record_.cycles[cycle_][size_t(parent.node)].child_of_rank[size_t(rank)];
    return place;
}

void ForcedAcceptance::level(std::span<Candidate> table, int first, int last) {
    places_.resize(size_t(last));
    depths_.resize(size_t(last));
    int rank = 0;
    for (int i = first; i < last; ++i) {
        Candidate& candidate = table[size_t(i)];
        const int parent = candidate.parent;
        rank = i > first && table[size_t(i) - 1].parent == parent ? rank + 1 : 0;
        const Place above = parent < 0 ? Place{0, true} : places_[size_t(parent)];
        depths_[size_t(i)] = parent < 0 ? 1 : depths_[size_t(parent)] + 1;
        places_[size_t(i)] = child(above, rank, truth(above, depths_[size_t(i)]));
        candidate.log_prob = AcceptanceRecord::kNegligible;
        if (above.node >= 0) {
            const auto& known = record_.cycles[cycle_][size_t(above.node)].log_probs;
            if (size_t(rank) < known.size()) candidate.log_prob = known[size_t(rank)];
        }
        candidate.value = candidate.log_prob;
        if (parent >= 0) candidate.value += table[size_t(parent)].value;
    }
    table_.assign(table.begin(), table.begin() + last);
}

NodeList ForcedAcceptance::choices(const TokenTree& tree) {
    NodeList choices;  // matter on the true path alone
    choices.resize(size_t(tree.size()));
    int on_path = 0, entry = -1;  // the newest true node, and its place in the table
    choices[0] = choice_below(entry);
    for (int node = 1; node < tree.size(); ++node) {
        if (tree.parents[size_t(node)] != on_path ||
            tree.tokens[size_t(node)] != choices[size_t(on_path)])
            continue;
        const int token = tree.tokens[size_t(node)];
        const auto child =
            std::find_if(table_.begin(), table_.end(), [&](const Candidate& candidate) {
                return candidate.parent == entry && candidate.token == token;
            });
        entry = int(child - table_.begin());
        on_path = node;
        choices[size_t(node)] = choice_below(entry);
    }
    if (!table_.empty()) cycle_ = (cycle_ + 1) % record_.cycles.size();
    table_.clear();
    return choices;
}

// The true token below a table entry (-1: the root), else one that is no candidate there.
int ForcedAcceptance::choice_below(int entry) const {
    FixedVector<int, kMaxTopK> candidates;
    for (size_t i = 0; i < table_.size(); ++i) {
        if (table_[i].parent != entry) continue;
        if (places_[i].is_true) return table_[i].token;
        candidates.push_back(table_[i].token);
    }
    int other = 0;
    while (std::count(candidates.begin(), candidates.end(), other)) ++other;
    return other;
}

TokenTree ForcedAcceptance::replay(const TreeShape& shape) {
    std::vector<Candidate> table;
    std::vector<int> parents = {-1};
    for (int level = 0; level < shape.levels; ++level) {
        const int first = int(table.size());
        for (int parent : parents)
            for (int rank = 0; rank < shape.top_k; ++rank) table.push_back({rank, parent, 0, 0});
        this->level(table, first, int(table.size()));
        Frontier frontier;
        best_frontier(table, first, shape.top_k, frontier);
        parents.clear();
        for (int number : frontier) parents.push_back(first + number);
    }
    return tree_of(table, best_entries(table, 0, int(table.size()), shape.nodes - 1), 0);
}

double ForcedAcceptance::tau(const TreeShape& shape) {
    restart();
    size_t tokens = 0;
    do {
        const TokenTree tree = replay(shape);
        tokens += accept(tree, choices(tree)).nodes.size();
    } while (cycle_ > 0);
    return double(tokens) / double(record_.cycles.size());
}

void ForcedAcceptance::rescale(double wanted) {
    double low = -1, high = 1;
    const auto tau_at = [&](double shift) {
        shift_ = shift;
        return tau(kPaperShape);
    };
    if (!(wanted >= tau_at(low)) || !(wanted <= tau_at(high)))
        throw UsageError("an acceptance length of " + std::to_string(wanted) +
                         " cannot be had of this record");
    for (int step = 0; step < 20; ++step) {
        const double middle = (low + high) / 2;
        (tau_at(middle) < wanted ? low : high) = middle;
    }
    shift_ = high;
    restart();
}

}  // namespace aerie
