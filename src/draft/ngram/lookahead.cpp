// Lookahead decoding (Fu et al. 2024; docs/drafting.md section 9). The target drafts for itself: a
// window of its earlier guesses runs in each pass as part of the tree. Its choices there complete
// n-grams. N-grams that begin with the pending token are proposed in the next cycle. Unless the
// shape is given, measured costs decide in each cycle how wide the window is and which n-grams are
// worth their rows; where a window never pays, the n-grams of the text remain.
#include <algorithm>
#include <climits>
#include <cmath>

#include "core/error.h"
#include "core/rng.h"
#include "draft/methods.h"
#include "draft/trees/estimate.h"

namespace aerie {

namespace {

constexpr int kMaxGrams = 1 << 13;    // the newest n-grams that a pool keeps
constexpr int kSeedTokens = 1 << 11;  // at the end of a prompt; their n-grams fill the pool first

// Until a window of full width has shown what it brings, this many tokens a cycle are expected.
constexpr double kWindowPrior = 0.6, kWindowWeight = 8, kWindowMemory = 0.95;
constexpr double kNoWindowMemory = 0.998;  // in cycles without one, so that it is tried again
// The probability that the first token of the newest n-gram follows, that of an older one beside
// the next newer one's, and that a further token follows.
constexpr double kFirstTrue = 0.3, kFurtherTrue = 0.6, kGramWeight = 4, kGramMemory = 0.98;
constexpr double kOlder = 0.5;

// N-grams by their first token: for each token the newest ones, at most `guesses`. All memory is
// allocated at the start.
class GramPool {
  public:
    GramPool(int vocab, const LookaheadShape& shape)
        : shape_(shape), first_(size_t(vocab), -1), grams_(size_t(kMaxGrams)) {}

    static size_t size_bytes(int vocab) {
        return size_t(vocab) * sizeof(int) + size_t(kMaxGrams) * sizeof(Gram);
    }

    void clear() {
        std::fill(first_.begin(), first_.end(), -1);
        std::fill(grams_.begin(), grams_.end(), Gram{});
        oldest_ = 0;
    }

    // Adds the n-gram that begins `tokens`, or makes it the newest of its first token. `is_made`:
    // the window has made it.
    void add(std::span<const int> tokens, bool is_made) {
        const int token = tokens[0];
        const std::span<const int> rest = tokens.subspan(1, size_t(shape_.ngram) - 1);
        int count = 0, place = -1;
        for (int i = first_[size_t(token)]; i >= 0; i = grams_[size_t(i)].next) {
            ++count;
            place = i;
            if (grams_[size_t(i)].rest == rest) break;
        }
        const bool is_known = place >= 0 && grams_[size_t(place)].rest == rest;
        if (!is_known && count < shape_.guesses) {
            place = oldest_;
            oldest_ = (oldest_ + 1) % kMaxGrams;
        }
        if (grams_[size_t(place)].first >= 0) unlink(place);
        Gram& gram = grams_[size_t(place)];
        gram.rest = DepthList<int>(rest);
        gram.first = token;
        gram.is_made = is_made && !(is_known && !gram.is_made);
        gram.next = first_[size_t(token)];
        first_[size_t(token)] = place;
    }

    // Calls visit(other tokens, is_made) for each n-gram that begins with `token`, the newest
    // first.
    template <typename Visit>
    void visit(int token, const Visit& visit) const {
        for (int i = first_[size_t(token)]; i >= 0; i = grams_[size_t(i)].next)
            visit(std::span<const int>(grams_[size_t(i)].rest), grams_[size_t(i)].is_made);
    }

  private:
    struct Gram {
        DepthList<int> rest;
        int first = -1, next = -1;
        bool is_made = false;
    };

    void unlink(int gram) {
        int* link = &first_[size_t(grams_[size_t(gram)].first)];
        while (*link != gram) link = &grams_[size_t(*link)].next;
        *link = grams_[size_t(gram)].next;
        grams_[size_t(gram)].first = -1;
    }

    LookaheadShape shape_;
    std::vector<int> first_;  // [token]: the newest n-gram that begins with it
    std::vector<Gram> grams_;
    int oldest_ = 0;
};

class Lookahead final : public Drafter, CostAware {
  public:
    explicit Lookahead(const DraftPlan& plan)
        : shape_(shape_of(plan.options)),
          is_chosen_(!is_fixed(plan.options)),
          vocab_(plan.target.vocab),
          clock_(plan.options.clock) {}

    static DraftReach reach_of(const DraftOptions& options) {
        const LookaheadShape shape = shape_of(options);
        check_lookahead_shape(shape);
        return {shape.nodes(), shape.depth(), {}};
    }

    DraftReach reach() const override { return {shape_.nodes(), shape_.depth(), {}}; }
    std::unique_ptr<DraftState> begin() override { return std::make_unique<State>(*this); }
    void observe(const Observed&) override {}
    // The pool begins anew with each answer, so its trees do not depend on how the prompt was read.
    void prepare(const DraftRequest& request) override { request.state.truncate(0); }
    TokenTree propose(const DraftRequest& request) override {
        return state_of(request.state).propose(request.tokens);
    }
    void learn(const Verified& verified) override {
        if (is_chosen_) costs_->saw_verify(verified.tree.size(), verified.seconds);
        state_of(verified.state).learn(verified);
    }

    // A proposal takes no time to speak of: one level stands for all of it.
    CostAware* cost_aware() override { return is_chosen_ ? this : nullptr; }
    double level_seconds(const DraftRequest& request, int) override {
        const double start = clock_();
        state_of(request.state).propose(request.tokens);
        return clock_() - start;
    }
    int widest_level() const override { return 1; }
    Account& account(DraftState& state) override { return state_of(state).account; }
    TreePlan planned(const DraftState& state) const override {
        return static_cast<const State&>(state).plan;
    }

  private:
    static bool is_fixed(const DraftOptions& options) {
        return options.lookahead || options.is_published;
    }
    static LookaheadShape shape_of(const DraftOptions& options) {
        return options.lookahead.value_or(LookaheadShape{});
    }

    class State final : public DraftState {
      public:
        explicit State(const Lookahead& of)
            : drafter_(&of), shape_(of.shape_), pool_(of.vocab_, of.shape_) {}

        int positions() const override { return INT_MAX; }
        void truncate(int positions) override {
            width_ = rows_ = 0;
            if (positions > 0 || !has_pool_) return;
            account.begin_text();
            brought_ = {};
            pool_.clear();
            has_pool_ = false;
            pooled_ = 0;
        }
        std::unique_ptr<DraftState> fork(int) const override {
            auto other = std::make_unique<State>(*this);
            other->width_ = other->rows_ = 0;
            return other;
        }
        // The state is not worth saving, since a few cycles fill the pool again.
        void save(SaveSink&) const override {}
        void load(SaveSource&) override { truncate(0); }

        TokenTree propose(std::span<const int> tokens);
        void learn(const Verified& verified);

        Account account;
        TreePlan plan;  // tokens and cost of the newest proposal

      private:
        using Cells = FixedVector<int, kMaxNodes>;
        // A node that an n-gram of the pool adds, below an earlier one (-1: below the root).
        struct GramNode {
            int token, parent;
            double probability;  // probability of the whole path
            bool is_made;
        };
        using GramNodes = FixedVector<GramNode, kMaxNodes>;

        void pool_text(std::span<const int> tokens);
        int any_token(std::span<const int> tokens);
        int window_nodes() const { return rows_ == 0 ? 0 : rows_ * width_ - 1; }
        double window_gain(int width) const;
        int best_width() const;
        void set_width(std::span<const int> tokens);
        void add_window(TokenTree& tree);
        GramNodes gram_nodes(int token) const;
        void add_grams(TokenTree& tree);
        void learn_grams(std::span<const int> tokens);
        void move_window(const Verified& verified);
        static int child(TokenTree& tree, int parent, int token);
        // Index of this row and column in window_ and nodes_.
        size_t cell(int row, int column) const { return size_t(row * width_ + column); }

        const Lookahead* drafter_;
        LookaheadShape shape_;
        GramPool pool_;
        bool has_pool_ = false;
        size_t pooled_ = 0;  // n-grams of the text before this token are in the pool
        int width_ = 0;      // columns of the window; 0: there is none
        int rows_ = 0;       // rows of the window so far
        Cells window_;       // tokens; row r, column c guesses the position root + r + c
        Cells nodes_;        // node of each window cell in the newest tree
        int draws_ = 0;
        GramNodes grams_;                      // n-grams that the newest proposal could draft
        FixedVector<bool, kMaxNodes> is_own_;  // [node]: only the window has brought it
        Estimate first_, further_;             // true tokens of n-grams by predicted ones
        Estimate brought_;  // tokens that a full window's n-grams brought, by the part of its width
    };

    static State& state_of(DraftState& state) { return static_cast<State&>(state); }

    LookaheadShape shape_;  // the largest one, if costs choose
    bool is_chosen_;
    int vocab_;
    Clock clock_;
};

// A pseudo-random token of the text.
int Lookahead::State::any_token(std::span<const int> tokens) {
    const double place = uniform(0, draws_++, Purpose::draft, 0);
    return tokens[size_t(place * double(tokens.size()))];
}

// Adds the n-grams of the prompt's end to the pool, and where costs choose, those of the answer
// too: they take no rows, while a window may never pay.
void Lookahead::State::pool_text(std::span<const int> tokens) {
    if (has_pool_ && !drafter_->is_chosen_) return;
    const size_t n = size_t(shape_.ngram);
    pooled_ = std::max(pooled_, tokens.size() - std::min(tokens.size(), size_t(kSeedTokens)));
    for (; pooled_ + n <= tokens.size(); ++pooled_) pool_.add(tokens.subspan(pooled_, n), false);
    has_pool_ = true;
}

// Tokens that a window of this width brings in a cycle beyond what its rows cost.
double Lookahead::State::window_gain(int width) const {
    const int nodes = (shape_.ngram - 1) * width - 1;
    const double cost = drafter_->costs_->verify(1 + nodes) - 1;
    const double brings = brought_.mean(kWindowPrior, kWindowWeight) * width / shape_.window;
    return brings - account.rate * cost;
}

// The width with the greatest gain; 0 if none has any, or if filling such a window costs more than
// drafting may lose.
int Lookahead::State::best_width() const {
    int best = 0;
    double most = 0;
    // A narrow window would be filled with other tokens before it has made an n-gram.
    for (int width = (shape_.window + 1) / 2; width <= shape_.window; ++width) {
        double filling = 0;
        for (int rows = 1; rows < shape_.ngram; ++rows)
            filling += drafter_->costs_->verify(rows * width) - 1;
        if (const double gain = window_gain(width); gain > most && filling <= account.balance) {
            most = gain;
            best = width;
        }
    }
    return best;
}

// Begins a window, or drops the one that there is.
void Lookahead::State::set_width(std::span<const int> tokens) {
    if (rows_ > 0) {
        const double cost = drafter_->costs_->verify(1 + window_nodes()) - 1;
        if (!drafter_->is_chosen_ || (window_gain(width_) > 0 && cost <= account.balance)) return;
        width_ = rows_ = 0;
        return;
    }
    width_ = drafter_->is_chosen_ ? best_width() : shape_.window;
    if (width_ == 0) return;
    rows_ = 1;
    draws_ = 0;
    window_.resize(cell(shape_.ngram - 1, 0));
    nodes_.resize(window_.size());
    for (int column = 0; column < width_; ++column) window_[cell(0, column)] = any_token(tokens);
}

// Returns the child of `parent` with this token, and adds it if there is none.
int Lookahead::State::child(TokenTree& tree, int parent, int token) {
    for (int i = parent + 1; i < tree.size(); ++i)
        if (tree.parents[size_t(i)] == parent && tree.tokens[size_t(i)] == token) return i;
    tree.add(token, parent);
    return tree.size() - 1;
}

void Lookahead::State::add_window(TokenTree& tree) {
    if (rows_ == 0) return;
    window_[cell(0, 0)] = tree.tokens[0];
    nodes_[cell(0, 0)] = 0;
    for (int row = 0; row < rows_; ++row)
        for (int column = row == 0 ? 1 : 0; column < width_; ++column) {
            const int parent =
                row == 0 ? nodes_[cell(0, column - 1)] : nodes_[cell(row - 1, column)];
            nodes_[cell(row, column)] = child(tree, parent, window_[cell(row, column)]);
        }
}

// The nodes of the n-grams that begin with `token`, the newest n-gram first, parents first.
Lookahead::State::GramNodes Lookahead::State::gram_nodes(int token) const {
    GramNodes nodes;
    const double further = further_.mean(kFurtherTrue, kGramWeight);
    double first = first_.mean(kFirstTrue, kGramWeight);
    pool_.visit(token, [&](std::span<const int> rest, bool is_made) {
        int parent = -1;
        double probability = first;
        for (int next : rest) {
            const auto is_same = [&](const GramNode& node) {
                return node.parent == parent && node.token == next;
            };
            const auto known = std::find_if(nodes.begin(), nodes.end(), is_same);
            const int node = int(known - nodes.begin());
            if (known == nodes.end())
                nodes.push_back({next, parent, probability, is_made});
            else
                known->is_made &= is_made;
            parent = node;
            probability *= further;
        }
        first *= kOlder;
    });
    return nodes;
}

// Adds the likeliest nodes of the n-grams, as many as pay, or all of a given shape.
void Lookahead::State::add_grams(TokenTree& tree) {
    grams_ = gram_nodes(tree.tokens[0]);
    NodeList order, node_of;
    for (int i = 0; i < int(grams_.size()); ++i) order.push_back(i);
    size_t count = grams_.size();
    const int rows = tree.size();
    const CycleCosts& costs = *drafter_->costs_;
    if (drafter_->is_chosen_) {
        // Parents stand before their children, which are no likelier.
        std::sort(order.begin(), order.end(), [this](int a, int b) {
            const double x = grams_[size_t(a)].probability, y = grams_[size_t(b)].probability;
            return x != y ? x > y : a < b;
        });
        count = 0;
        double worth = 0, most = 0;
        for (int taken = 1; taken <= int(order.size()); ++taken) {
            worth += grams_[size_t(order[size_t(taken) - 1])].probability;
            const double cost = costs.verify(rows + taken) - costs.verify(rows);
            if (costs.verify(rows + taken) - 1 > account.balance) break;
            if (worth - account.rate * cost > most) {
                most = worth - account.rate * cost;
                count = size_t(taken);
            }
        }
    }
    node_of.resize(grams_.size());
    for (size_t i = 0; i < count; ++i) {
        const GramNode& gram = grams_[size_t(order[i])];
        const int parent = gram.parent < 0 ? 0 : node_of[size_t(gram.parent)];
        const int node = child(tree, parent, gram.token);
        node_of[size_t(order[i])] = node;
        if (node == int(is_own_.size())) is_own_.push_back(true);
        is_own_[size_t(node)] &= gram.is_made;
        plan.tokens += gram.probability;
    }
    plan.cost = costs.verify(tree.size());
}

TokenTree Lookahead::State::propose(std::span<const int> tokens) {
    pool_text(tokens);
    plan = {};
    set_width(tokens);
    TokenTree tree(tokens.back());
    add_window(tree);
    is_own_.clear();
    while (int(is_own_.size()) < tree.size()) is_own_.push_back(true);
    add_grams(tree);
    return tree;
}

// Follows the true tokens down the n-grams, including those that were not verified.
void Lookahead::State::learn_grams(std::span<const int> tokens) {
    int parent = -1;
    for (size_t depth = 0; depth < tokens.size(); ++depth) {
        Estimate& estimate = depth == 0 ? first_ : further_;
        bool has_children = false, is_newest_right = false;
        int found = -1;
        for (int i = 0; i < int(grams_.size()) && found < 0; ++i) {
            if (grams_[size_t(i)].parent != parent) continue;
            if (grams_[size_t(i)].token == tokens[depth]) {
                found = i;
                is_newest_right = !has_children;
            }
            has_children = true;
        }
        if (has_children) estimate.add(is_newest_right, 1, kGramMemory);
        if (found < 0) return;
        parent = found;
    }
}

void Lookahead::State::learn(const Verified& verified) {
    PathTokens tokens;
    for (int node : verified.accepted.subspan(1))
        tokens.push_back(verified.tree.tokens[size_t(node)]);
    if (tokens.size() < size_t(kMaxDepth)) tokens.push_back(verified.next);
    learn_grams(tokens);
    const bool has_full_window = rows_ > 0 && rows_ == shape_.ngram - 1;
    if (!has_full_window) brought_.add(0, 0, kNoWindowMemory);
    if (has_full_window) {
        int own = 0;
        for (int node : verified.accepted.subspan(1)) own += is_own_[size_t(node)];
        const double part = double(width_) / shape_.window;
        brought_.add(own, part, std::pow(kWindowMemory, part));
    }
    const bool drafted = verified.tree.size() > 1;
    account.settle(double(verified.accepted.size()), drafter_->costs_->verify(verified.tree.size()),
                   drafted ? Drafts::grafts : Drafts::none);
    if (rows_ > 0) move_window(verified);
}

// The choices below the last row of the window become its next row. Then the window moves to the
// new root.
void Lookahead::State::move_window(const Verified& verified) {
    const bool is_full = rows_ == shape_.ngram - 1;
    FixedVector<int, kMaxNodes> chosen;
    for (int column = 0; column < width_; ++column)
        chosen.push_back(verified.choices[size_t(nodes_[cell(rows_ - 1, column)])]);
    for (int column = 0; is_full && column < width_; ++column) {
        DepthList<int> gram;
        for (int row = 0; row < rows_; ++row) gram.push_back(window_[cell(row, column)]);
        gram.push_back(chosen[size_t(column)]);
        pool_.add(gram, true);
    }
    const int ahead = int(verified.accepted.size());  // positions by which the root moves
    const Cells old = window_;
    const int rows = is_full ? rows_ : rows_ + 1;
    for (int row = 0; row < rows; ++row)
        for (int column = 0; column < width_; ++column) {
            // A full window drops its first row, so its cells are one position further already.
            const int from_row = is_full ? row + 1 : row;
            const int from = column + ahead - (is_full ? 1 : 0);
            int& token = window_[cell(row, column)];
            if (from >= width_)
                token = any_token(verified.tree.tokens);
            else
                token = from_row == rows_ ? chosen[size_t(from)] : old[cell(from_row, from)];
        }
    rows_ = rows;
}

}  // namespace

void check_lookahead_shape(const LookaheadShape& shape) {
    const auto fail = [](const std::string& what) {
        throw UsageError("--lookahead W,N,G " + what);
    };
    if (shape.window < 1 || shape.guesses < 1) fail("needs a window and guesses of 1 at least");
    if (shape.ngram < 2) fail("needs n-grams of 2 tokens at least");
    if (shape.window > kMaxNodes || shape.guesses > kMaxNodes || shape.ngram > kMaxNodes ||
        shape.nodes() > kMaxNodes)
        fail("may verify (N-1) (W+G) tokens, at most " + std::to_string(kMaxNodes - 1));
    if (shape.depth() > kMaxDepth)
        fail("may be " + std::to_string(kMaxDepth) + " tokens deep, not " +
             std::to_string(shape.depth()));
}

DraftMethod lookahead_method() {
    DraftMethod method;
    method.name = "lookahead";
    method.help =
        "n-grams that the model makes ahead of the text, in the same passes, where that pays; "
        "needs "
        "no head";
    method.takes_tree = false;
    method.reach = [](const DraftPlan& plan) { return Lookahead::reach_of(plan.options); };
    method.host_bytes = [](const DraftPlan& plan) {
        return size_t(plan.sequences) * GramPool::size_bytes(plan.target.vocab);
    };
    method.make = [](const DraftSource& source) {
        return std::make_unique<Lookahead>(source.plan);
    };
    return method;
}

}  // namespace aerie
