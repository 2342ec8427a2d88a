// Lookahead decoding (Fu et al. 2024; docs/drafting.md section 9). The target drafts for itself: a
// window of its earlier guesses runs in each pass as part of the tree. Its choices there complete
// n-grams. N-grams that begin with the pending token are proposed in the next cycle.
#include <climits>

#include "core/error.h"
#include "core/rng.h"
#include "draft/methods.h"

namespace aerie {

namespace {

constexpr int kMaxGrams = 1 << 13;    // the newest n-grams that a pool keeps
constexpr int kSeedTokens = 1 << 11;  // at the end of a prompt; their n-grams fill the pool first

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

    // Adds the n-gram that begins `tokens`, or makes it the newest of its first token.
    void add(std::span<const int> tokens) {
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
        gram.next = first_[size_t(token)];
        first_[size_t(token)] = place;
    }

    // Calls `visit` with the other tokens of each n-gram that begins with `token`, the newest
    // first.
    template <typename Visit>
    void visit(int token, const Visit& visit) const {
        for (int i = first_[size_t(token)]; i >= 0; i = grams_[size_t(i)].next)
            visit(std::span<const int>(grams_[size_t(i)].rest));
    }

  private:
    struct Gram {
        DepthList<int> rest;
        int first = -1, next = -1;
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

class Lookahead final : public Drafter {
  public:
    explicit Lookahead(const DraftPlan& plan)
        : shape_(plan.options.lookahead), vocab_(plan.target.vocab) {}

    static DraftReach reach_of(const LookaheadShape& shape) {
        check_lookahead_shape(shape);
        return {shape.nodes(), shape.depth(), {}};
    }

    DraftReach reach() const override { return reach_of(shape_); }
    std::unique_ptr<DraftState> begin() override { return std::make_unique<State>(shape_, vocab_); }
    void observe(const Observed&) override {}
    // The pool begins anew with each answer, so its trees do not depend on how the prompt was read.
    void prepare(const DraftRequest& request) override { request.state.truncate(0); }
    TokenTree propose(const DraftRequest& request) override {
        return static_cast<State&>(request.state).propose(request.tokens);
    }
    void learn(const Verified& verified) override {
        static_cast<State&>(verified.state).learn(verified);
    }

  private:
    class State final : public DraftState {
      public:
        State(const LookaheadShape& shape, int vocab) : shape_(shape), pool_(vocab, shape) {}

        int positions() const override { return INT_MAX; }
        void truncate(int positions) override {
            rows_ = 0;
            if (positions > 0 || !has_pool_) return;
            pool_.clear();
            has_pool_ = false;
        }
        std::unique_ptr<DraftState> fork(int) const override {
            auto other = std::make_unique<State>(*this);
            other->rows_ = 0;
            return other;
        }
        // The state is not worth saving, since a few cycles fill the pool again.
        void save(SaveSink&) const override {}
        void load(SaveSource&) override { truncate(0); }

        TokenTree propose(std::span<const int> tokens);
        void learn(const Verified& verified);

      private:
        using Cells = FixedVector<int, kMaxNodes>;

        void begin(std::span<const int> tokens);
        int any_token(std::span<const int> tokens);
        static int child(TokenTree& tree, int parent, int token);
        // Index of this row and column in window_ and nodes_.
        size_t cell(int row, int column) const { return size_t(row * shape_.window + column); }

        LookaheadShape shape_;
        GramPool pool_;
        bool has_pool_ = false;
        int rows_ = 0;  // rows of the window so far; 0: none
        Cells window_;  // tokens; row r, column c guesses the position root + r + c
        Cells nodes_;   // node of each window cell in the newest tree
        int draws_ = 0;
    };

    LookaheadShape shape_;
    int vocab_;
};

// A pseudo-random token of the text.
int Lookahead::State::any_token(std::span<const int> tokens) {
    const double place = uniform(0, draws_++, Purpose::draft, 0);
    return tokens[size_t(place * double(tokens.size()))];
}

void Lookahead::State::begin(std::span<const int> tokens) {
    if (!has_pool_) {
        const size_t n = size_t(shape_.ngram);
        size_t first = tokens.size() - std::min(tokens.size(), size_t(kSeedTokens));
        for (; first + n <= tokens.size(); ++first) pool_.add(tokens.subspan(first, n));
        has_pool_ = true;
    }
    rows_ = 1;
    draws_ = 0;
    window_.resize(cell(shape_.ngram - 1, 0));
    nodes_.resize(window_.size());
    for (int column = 0; column < shape_.window; ++column)
        window_[cell(0, column)] = any_token(tokens);
}

// Returns the child of `parent` with this token, and adds it if there is none.
int Lookahead::State::child(TokenTree& tree, int parent, int token) {
    for (int i = parent + 1; i < tree.size(); ++i)
        if (tree.parents[size_t(i)] == parent && tree.tokens[size_t(i)] == token) return i;
    tree.add(token, parent);
    return tree.size() - 1;
}

TokenTree Lookahead::State::propose(std::span<const int> tokens) {
    if (rows_ == 0) begin(tokens);
    TokenTree tree(tokens.back());
    window_[cell(0, 0)] = tokens.back();
    nodes_[cell(0, 0)] = 0;
    for (int row = 0; row < rows_; ++row)
        for (int column = row == 0 ? 1 : 0; column < shape_.window; ++column) {
            const int parent =
                row == 0 ? nodes_[cell(0, column - 1)] : nodes_[cell(row - 1, column)];
            nodes_[cell(row, column)] = child(tree, parent, window_[cell(row, column)]);
        }
    pool_.visit(tokens.back(), [&](std::span<const int> guess) {
        int node = 0;
        for (int token : guess) node = child(tree, node, token);
    });
    return tree;
}

// The choices below the last row of the window become its next row. Then the window moves to the
// new root.
void Lookahead::State::learn(const Verified& verified) {
    if (rows_ == 0) return;
    const bool is_full = rows_ == shape_.ngram - 1;
    FixedVector<int, kMaxNodes> chosen;
    for (int column = 0; column < shape_.window; ++column)
        chosen.push_back(verified.choices[size_t(nodes_[cell(rows_ - 1, column)])]);
    for (int column = 0; is_full && column < shape_.window; ++column) {
        DepthList<int> gram;
        for (int row = 0; row < rows_; ++row) gram.push_back(window_[cell(row, column)]);
        gram.push_back(chosen[size_t(column)]);
        pool_.add(gram);
    }
    const int ahead = int(verified.accepted.size());  // positions by which the root moves
    const Cells old = window_;
    const int rows = is_full ? rows_ : rows_ + 1;
    for (int row = 0; row < rows; ++row)
        for (int column = 0; column < shape_.window; ++column) {
            // A full window drops its first row, so its cells are one position further already.
            const int from_row = is_full ? row + 1 : row;
            const int from = column + ahead - (is_full ? 1 : 0);
            int& token = window_[cell(row, column)];
            if (from >= shape_.window)
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
        "n-grams that the model makes ahead of the text, in the same passes; needs no head";
    method.takes_tree = false;
    method.reach = [](const DraftPlan& plan) {
        return Lookahead::reach_of(plan.options.lookahead);
    };
    method.host_bytes = [](const DraftPlan& plan) {
        return size_t(plan.sequences) * GramPool::size_bytes(plan.target.vocab);
    };
    method.make = [](const DraftSource& source) {
        return std::make_unique<Lookahead>(source.plan);
    };
    return method;
}

}  // namespace aerie
