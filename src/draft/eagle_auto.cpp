// EAGLE-2's tree, chosen by measurement: a TreePolicy decides after each level, on the clock.
#include <algorithm>
#include <chrono>

#include "draft/eagle.h"
#include "draft/tree_policy.h"

namespace aerie {

namespace {

// Most positions that the head reads before a proposal after a stretch of plain decoding.
constexpr int kWindow = 16;

class Clock {
  public:
    double lap_seconds() {
        const auto now = std::chrono::steady_clock::now();
        const double seconds = std::chrono::duration<double>(now - start_).count();
        start_ = now;
        return seconds;
    }

  private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Runs one level of the given width below the root, and takes its time.
class OneLevel final : public FrontierPolicy {
  public:
    explicit OneLevel(int width) : width_(width) {}
    double seconds = 0;

    void choose(std::span<const Candidate> table, int first, Frontier& frontier) override {
        if (first > 0) {
            seconds = clock_.lap_seconds();
            return;
        }
        best_frontier(table, first, width_, frontier);
        clock_.lap_seconds();
    }

  private:
    int width_;
    Clock clock_;
};

class EagleAuto final : public EagleDrafter, CostAware, FrontierPolicy {
  public:
    EagleAuto(const HeadSource& source, const DraftOptions& options)
        : EagleDrafter(source, dynamic_reach(options), options),
          most_(*options.tree),
          policy_(most_) {}

    void observe(Tensor features, std::span<const int> next_tokens, int position) override {
        if (position == 0) policy_.begin_text();
        EagleDrafter::observe(features, next_tokens, position);
    }

    void prepare() override {
        if (policy_.would_draft(1)) catch_up();
    }

    TokenTree propose(const DraftContext& context) override {
        read_ = std::min(backlog(), kWindow);
        if (!policy_.begin(read_)) return TokenTree(context.pending);
        clock_.lap_seconds();
        running_ = 0;
        catch_up(kWindow);
        const std::span<const Candidate> table = grow(*this, most_.top_k, context);
        return tree_of(table, policy_.kept(), context.pending);
    }

    void learn(const TokenTree& tree, std::span<const int> accepted, int next,
               double verify_seconds) override {
        policy_.costs().saw_verify(tree.size(), verify_seconds);
        policy_.learn(tree, accepted, next);
    }

    CostAware* cost_aware() override { return this; }
    double level_seconds(int width) override {
        catch_up(kWindow);
        OneLevel level(width);
        grow(level, most_.top_k, {});
        return level.seconds;
    }
    int widest_level() const override { return most_.top_k; }
    void set_costs(const MeasuredCosts& costs) override { policy_.set_costs(costs); }
    double cost_correction() const override { return policy_.costs().correction(); }

  private:
    void choose(std::span<const Candidate> table, int first, Frontier& frontier) override {
        const double seconds = clock_.lap_seconds();
        if (running_ == 0)
            policy_.costs().saw_root(read_, seconds);
        else
            policy_.costs().saw_level(running_, seconds);
        policy_.choose(table, first, frontier);
        running_ = int(frontier.size());
        clock_.lap_seconds();
    }

    TreeShape most_;
    TreePolicy policy_;
    Clock clock_;
    int read_ = 0;     // positions that the head reads in this cycle
    int running_ = 0;  // rows of the level that is run; 0: the root's
};

}  // namespace

std::unique_ptr<Drafter> make_eagle_auto(const HeadSource& source, const DraftOptions& options) {
    return std::make_unique<EagleAuto>(source, options);
}

}  // namespace aerie
