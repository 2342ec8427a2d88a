// The constants say how cautious the policy is; docs/drafting.md section 6 explains it.
#include "draft/trees/tree_policy.h"

#include <algorithm>
#include <cmath>

namespace aerie {

namespace {

constexpr double kTruthMemory = 0.99, kConfidenceMemory = 0.9;
constexpr double kPlainMemory = 0.9;  // decay of observations in a plain cycle
constexpr double kTruthPrior = 0.95, kTruthWeight = 6;
constexpr double kConfidencePrior[2] = {0.75, 0.1}, kConfidenceWeight = 2;
// A head trained on a distribution is too modest if the target takes the likeliest token.
constexpr double kFirstTrust = 1.5, kMaxTrust = 8, kTrustStep = 0.2;
constexpr double kGraftPrior[] = {1, 0.5, 0.8}, kGraftWeight = 2;  // by GraftKind
constexpr double kSiblingsShare = 0.8;  // its part of what the best child leaves
constexpr int kUsualBacklog = 2;        // a longer read is charged to later cycles, too
constexpr double kSurest = 0.98;        // largest calibrated probability
constexpr int kPriceRows = 4;  // verify() has steps: a row's price is the least mean over these

}  // namespace

TreePolicy::TreePolicy(const TreeShape& most, const AllowedRanks& allowed,
                       std::shared_ptr<CycleCosts> costs, bool has_grafts)
    : most_(most),
      allowed_(&allowed),
      costs_(std::move(costs)),
      has_grafts_(has_grafts),
      trust_(kFirstTrust) {
    truth_.resize(size_t(most.levels) + 1);
    for (auto& of_rank : confidence_) of_rank.resize(size_t(most.levels) + 1);
    const size_t candidates =
        size_t(most.top_k) * size_t(1 + (most.levels - 1) * most.top_k) + size_t(kMaxNodes);
    probability_.reserve(candidates);
    conditional_.reserve(candidates);
    drafted_.reserve(candidates);
    places_.reserve(candidates);
    siblings_.reserve(candidates);
}

// Probability that the next true token is the child of this rank, given that its parent is true.
double TreePolicy::expected(int depth, int rank) const {
    const size_t at = size_t(depth);
    return truth_[at].mean(kTruthPrior, kTruthWeight) *
           confidence_[rank][at].mean(kConfidencePrior[rank], kConfidenceWeight);
}

// The least cost of a further row in a tree of `nodes`.
double TreePolicy::row_cost(int nodes) const {
    double least = costs_->verify(kMaxNodes);
    for (int rows = 1; rows <= kPriceRows && nodes + rows <= kMaxNodes; ++rows)
        least = std::min(least, (costs_->verify(nodes + rows) - costs_->verify(nodes)) / rows);
    return least;
}

// The tokens, beyond their price, that running the head on a node at `place` brings if its children
// are as good as those seen so far. The cost of the first level below is not included, the cost of
// further levels is.
double TreePolicy::gain_below(double probability, int depth, int place) const {
    const int child = allowed_->child(place, 0);
    double gain = 0;
    for (int rank : {0, 1})
        if (allowed_->child(place, rank) != AllowedRanks::kNone)
            gain += std::max(0.0, probability * expected(depth + 1, rank) - row_price_);
    const double best_child =
        child == AllowedRanks::kNone ? 0 : probability * expected(depth + 1, 0);
    if (best_child > row_price_ && depth + 1 < most_.levels)
        gain += std::max(
            0.0, gain_below(best_child, depth + 1, child) - account_.rate * costs_->level(1));
    return gain;
}

void TreePolicy::begin_text() {
    account_.begin_text();
}

bool TreePolicy::would_draft(int backlog) const {
    const bool affordable = costs_->root(backlog) + costs_->verify(2) - 1 <= most_for_head();
    return affordable && gain_below(1, 0, AllowedRanks::kRoot) >
                             account_.rate * costs_->root(std::min(backlog, kUsualBacklog));
}

void TreePolicy::begin_cycle() {
    depth_ = 0;
    spent_ = 0;
    best_.clear();
    probability_.clear();
    conditional_.clear();
    drafted_.clear();
    places_.clear();
    siblings_.clear();
    grafts_.clear();
    row_price_ = account_.rate * row_cost(1);
}

bool TreePolicy::begin(int backlog) {
    begin_cycle();
    const bool drafts = would_draft(backlog);
    if (drafts) spent_ = costs_->root(backlog);
    return drafts;
}

bool TreePolicy::begin_grafts(double cost) {
    begin_cycle();
    const bool drafts = cost <= account_.balance;
    if (drafts) spent_ = cost;
    return drafts;
}

// The entry of this token below `parent`; -1 if the head did not propose it.
int TreePolicy::find(int parent, int token, bool& has_children) const {
    has_children = false;
    for (const Siblings& siblings : siblings_) {
        if (siblings.parent != parent) continue;
        has_children = true;
        for (int i = siblings.first; i < siblings.first + siblings.count; ++i)
            if (drafted_[size_t(i)] == token) return i;
    }
    return -1;
}

TreePlan TreePolicy::planned() const {
    const NodeList entries = kept();
    TreePlan plan{1, spent_ + costs_->verify(1 + int(entries.size()))};
    for (int entry : entries) plan.tokens += double(probability_[size_t(entry)]);
    return plan;
}

int TreePolicy::graft(int parent, int token, float conditional) {
    bool has_children = false;
    int entry = find(parent, token, has_children);
    const GraftKind kind = entry >= 0 ? same : has_children ? beside : alone;
    const double factor = grafts_were_[kind].mean(kGraftPrior[kind], kGraftWeight);
    const double above = parent < 0 ? 1 : double(probability_[size_t(parent)]);
    const auto path = float(above * std::min(kSurest, factor * double(conditional)));
    if (entry < 0) {
        entry = entries();
        probability_.push_back(path);
        conditional_.push_back(conditional);
        drafted_.push_back(token);
        places_.push_back(AllowedRanks::kNone);
        if (siblings_.empty() && path > 0) offer(entry);
    } else {
        float& known = probability_[size_t(entry)];
        known = std::max(known, path);
    }
    grafts_.push_back({parent, entry, token, kind, conditional});
    return entry;
}

void TreePolicy::end_grafts() {
    if (siblings_.empty()) return;  // every graft was offered when it was made
    best_.clear();
    for (int i = 0; i < entries(); ++i)
        if (probability_[size_t(i)] > 0) offer(i);
}

// Follows the true tokens down the grafts, including those that were not verified.
void TreePolicy::judge_grafts(std::span<const int> tokens) {
    int entry = -1;
    for (size_t depth = 0; depth < tokens.size(); ++depth) {
        int next = -2;
        for (const Graft& graft : grafts_) {
            if (graft.parent != entry) continue;
            const bool is_true = graft.token == tokens[depth];
            grafts_were_[graft.kind].add(is_true, double(graft.conditional), kTruthMemory);
            if (is_true) next = graft.entry;
        }
        bool ignored = false;
        if (next == -2) next = find(entry, tokens[depth], ignored);
        if (next < 0) return;
        entry = next;
    }
}

bool TreePolicy::less_likely(int a, int b) const {
    const float x = probability_[size_t(a)], y = probability_[size_t(b)];
    return x != y ? x < y : a > b;
}

// Adds the entry to the heap if it is among the likeliest; a full heap drops its least likely one.
void TreePolicy::offer(int entry) {
    const auto likelier = [this](int a, int b) { return less_likely(b, a); };
    if (int(best_.size()) == most_.nodes - 1) {
        if (!less_likely(best_.front(), entry)) return;
        std::pop_heap(best_.begin(), best_.end(), likelier);
        best_.pop_back();
    }
    best_.push_back(entry);
    std::push_heap(best_.begin(), best_.end(), likelier);
}

// The best child gets the head's own odds, corrected by trust_; its siblings share what it leaves.
void TreePolicy::add_siblings(std::span<const Candidate> table, const Siblings& siblings) {
    const double truth = truth_[size_t(depth_)].mean(kTruthPrior, kTruthWeight);
    const double above = siblings.parent < 0 ? 1 : double(probability_[size_t(siblings.parent)]);
    const int parent = siblings.parent < 0 ? AllowedRanks::kRoot : places_[size_t(siblings.parent)];
    double first_claim = 0, first_share = 0;
    for (int i = 0; i < siblings.count; ++i) {
        const Candidate& candidate = table[size_t(siblings.first + i)];
        const double odds_of = std::exp(double(candidate.log_prob));
        const double claim = odds_of > 0 ? std::min(odds_of, kSurest) : 0;  // NaN is impossible
        double share = 0;
        if (i == 0) {
            const double odds = claim / (1 - claim) * std::exp(trust_);
            first_claim = claim;
            share = first_share = std::min(kSurest, odds / (1 + odds));
        } else {
            share = kSiblingsShare * (1 - first_share) * claim / std::max(1 - first_claim, claim);
        }
        const int place = allowed_->child(parent, i);
        const bool is_allowed = place != AllowedRanks::kNone;
        conditional_.push_back(float(share));
        probability_.push_back(is_allowed ? float(above * std::min(kSurest, truth * share)) : 0);
        drafted_.push_back(candidate.token);
        places_.push_back(place);
        if (probability_.back() > 0) offer(siblings.first + i);
    }
}

void TreePolicy::read_level(std::span<const Candidate> table, int first) {
    ++depth_;
    for (int i = first; i < int(table.size());) {
        Siblings siblings{table[size_t(i)].parent, i, 0};
        while (i < int(table.size()) && table[size_t(i)].parent == siblings.parent)
            ++i, ++siblings.count;
        add_siblings(table, siblings);
        siblings_.push_back(siblings);
    }
    // The head's confidence below the likeliest node predicts its confidence in later cycles.
    const int count = std::min(2, int(table.size()) - first);
    for (int rank = 0; rank < count; ++rank)
        confidence_[rank][size_t(depth_)].add(conditional_[size_t(first + rank)], 1,
                                              kConfidenceMemory);
}

NodeList TreePolicy::likeliest() const {
    NodeList entries = best_;
    std::sort(entries.begin(), entries.end(), [this](int a, int b) { return less_likely(b, a); });
    return entries;
}

// Number of entries, likeliest first, with the greatest total gain. verify() has steps, so entries
// may pay together even if the first of them does not.
int TreePolicy::best_count(const NodeList& entries) const {
    int best = 0;
    double worth = 0, most = 0;
    const double may_lose = siblings_.empty() ? account_.balance : most_for_head();
    for (int count = 1; count <= int(entries.size()); ++count) {
        const double cost = costs_->verify(1 + count) - 1;
        worth += probability_[size_t(entries[size_t(count) - 1])];
        if (worth - account_.rate * cost > most && spent_ + cost <= may_lose) {
            most = worth - account_.rate * cost;
            best = count;
        }
    }
    return best;
}

void TreePolicy::choose(std::span<const Candidate> table, int first, Frontier& frontier) {
    read_level(table, first);
    if (depth_ == most_.levels) return;
    const int nodes = 1 + best_count(likeliest());
    row_price_ = account_.rate * row_cost(nodes);

    FixedVector<int32_t, kMaxTopK * kMaxTopK> order;
    for (int i = first; i < int(table.size()); ++i)
        if (allowed_->has_children(places_[size_t(i)])) order.push_back(i - first);
    const int widest = std::min(most_.top_k, int(order.size()));
    std::partial_sort(order.begin(), order.begin() + widest, order.end(),
                      [&](int a, int b) { return less_likely(first + b, first + a); });
    double gain = 0, most = 0;
    int width = 0;
    for (int w = 1; w <= widest; ++w) {
        const double cost = costs_->level(w);
        const size_t entry = size_t(first + order[size_t(w) - 1]);
        gain += gain_below(probability_[entry], depth_, places_[entry]);
        const bool affordable = spent_ + cost + costs_->verify(nodes) - 1 <= most_for_head();
        if (affordable && gain - account_.rate * cost > most) {
            most = gain - account_.rate * cost;
            width = w;
        }
    }
    if (width > 0) spent_ += costs_->level(width);
    for (int i = 0; i < width; ++i) frontier.push_back(order[size_t(i)]);
}

NodeList TreePolicy::kept() const {
    NodeList entries = likeliest();
    entries.resize(size_t(best_count(entries)));
    std::sort(entries.begin(), entries.end());
    return entries;
}

// Whether the true token is among these candidates; `entry` becomes its index, or -1.
bool TreePolicy::calibrate(const Siblings& siblings, int depth, int token, int& entry) {
    double predicted = 0;
    entry = -1;
    for (int i = siblings.first; i < siblings.first + siblings.count; ++i) {
        predicted += conditional_[size_t(i)];
        if (drafted_[size_t(i)] == token && entry < 0) entry = i;
    }
    truth_[size_t(depth)].add(entry >= 0, predicted, kTruthMemory);
    const double error = (entry == siblings.first) - double(conditional_[size_t(siblings.first)]);
    trust_ = std::clamp(trust_ + kTrustStep * error, -kMaxTrust, kMaxTrust);
    return entry >= 0;
}

// Follows the true tokens down the candidates, including those that were not verified.
void TreePolicy::calibrate(std::span<const int> tokens) {
    int entry = -1, depth = 0;
    for (const Siblings& siblings : siblings_) {  // parents first
        if (depth == int(tokens.size())) return;
        if (siblings.parent != entry) continue;
        ++depth;
        if (!calibrate(siblings, depth, tokens[size_t(depth) - 1], entry)) return;
    }
}

void TreePolicy::learn(const TokenTree& tree, std::span<const int> accepted, int next) {
    DepthList<int> tokens;
    for (int node : accepted.subspan(1)) tokens.push_back(tree.tokens[size_t(node)]);
    tokens.push_back(next);
    judge_grafts(tokens);
    if (!siblings_.empty()) {
        calibrate(tokens);
    } else {
        for (size_t depth = 0; depth < truth_.size(); ++depth)
            for (Estimate* estimate :
                 {&truth_[depth], &confidence_[0][depth], &confidence_[1][depth]})
                estimate->add(0, 0, kPlainMemory);
    }
    // Looking for grafts in vain is no draft: the cycle was a plain one.
    const Drafts drafts = !siblings_.empty() ? Drafts::head
                          : tree.size() > 1  ? Drafts::grafts
                                             : Drafts::none;
    account_.settle(double(accepted.size()), spent_ + costs_->verify(tree.size()), drafts);
}

// Upper bound of every number that load() accepts.
constexpr double kMaxLesson = 1e12;

// Visits all learned numbers in the order of files, each with its lower bound.
template <typename Self, typename Visit>
void TreePolicy::each_lesson(Self& self, const Visit& visit) {
    const auto estimates = [&](auto& list) {
        for (auto& estimate : list) {
            visit(estimate.sum, 0);
            visit(estimate.weight, 0);
        }
    };
    estimates(self.truth_);
    for (auto& list : self.confidence_) estimates(list);
    estimates(self.grafts_were_);
    auto& account = self.account_;
    for (auto* number : {&account.tokens, &account.time, &account.share}) visit(*number, 0);
    visit(account.rate, 1);
    visit(self.trust_, -kMaxLesson);
    visit(account.balance, -kMaxLesson);
    visit(account.head_balance, -kMaxLesson);
}

void TreePolicy::save(SaveSink& to) const {
    each_lesson(*this, [&](double number, double) { to.value(number); });
    to.value(int32_t(account_.was_plain));
}

void TreePolicy::load(SaveSource& from) {
    begin_text();
    each_lesson(*this, [&](double& number, double least) {
        number = from.value(least, kMaxLesson, "what drafts have taught");
    });
    account_.was_plain = from.value<int32_t>(0, 1, "the last cycle") == 1;
}

}  // namespace aerie
