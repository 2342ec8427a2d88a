// The policy that chooses trees, against recorded acceptance and made-up costs: the speed that it
// reaches, what it loses where drafting cannot pay, and how it recovers.
#include "draft/trees/tree_policy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/accept.h"
#include "measure/forced_acceptance.h"
#include "paths.h"

namespace aerie::test {
namespace {

// A device on which a pass takes 1 + slope * (rows - 1) ms, and a level `level` ms plus a tenth of
// that for each further row.
struct Device {
    double slope, level;

    double verify(int rows) const { return (1 + slope * (rows - 1)) / 1000; }
    double run(int rows) const { return level * (1 + 0.1 * (rows - 1)) / 1000; }
    MeasuredCosts measured() const {
        MeasuredCosts costs;
        for (int rows : {1, 2, 4, 8, 16, 32, 64}) costs.verify.push_back({rows, verify(rows)});
        for (int rows : {1, 4, 10}) costs.level.push_back({rows, run(rows)});
        return costs;
    }
};

struct Total {
    double tokens = 0, seconds = 0, nodes = 0, cycles = 0, plain = 0;

    // Speedup over plain decoding on this device.
    double speedup(const Device& device) const { return tokens * device.verify(1) / seconds; }
};

ForcedAcceptance recorded() {
    return ForcedAcceptance(
        read_recorded_drafts(repository_dir() / "bench" / "data" / "acceptance.txt"));
}

class Simulation {
  public:
    explicit Simulation(const Device& device) : device_(device), forced_(recorded()) {
        policy_.costs() = CycleCosts(device.measured());
    }

    ForcedAcceptance& forced() { return forced_; }
    TreePolicy& policy() { return policy_; }

    Total run(int cycles) {
        Total total;
        for (int i = 0; i < cycles; ++i) cycle(total);
        return total;
    }

    // Runs all texts, from the first on.
    Total run_texts() {
        Total total;
        forced_.restart();
        do cycle(total);
        while (!forced_.begins());
        return total;
    }

  private:
    void cycle(Total& total) {
        if (forced_.begins_text()) policy_.begin_text();
        double seconds = 0;
        table_.clear();
        NodeList kept;
        const int backlog = std::min(backlog_, 16);
        if (policy_.begin(backlog)) {
            seconds += saw(&CycleCosts::saw_root, backlog);
            grow(seconds);
            kept = policy_.kept();
            backlog_ = 0;
        }
        const TokenTree tree = tree_of(table_, kept, 0);
        const Path path = accept(tree, forced_.choices(tree));
        const double pass = device_.verify(tree.size());
        policy_.costs().saw_verify(tree.size(), pass);
        policy_.learn(tree, path.nodes, path.next);
        backlog_ += int(path.nodes.size());
        total.tokens += forced_.put_out();
        total.seconds += seconds + pass;
        total.nodes += tree.size();
        total.plain += tree.size() == 1;
        ++total.cycles;
    }

    double saw(void (CycleCosts::*note)(int, double), int rows) {
        (policy_.costs().*note)(rows, device_.run(std::max(rows, 1)));
        return device_.run(std::max(rows, 1));
    }

    void grow(double& seconds) {
        Frontier frontier;
        int first = -1;
        do {
            const int before = first;
            first = int(table_.size());
            const int parents = before < 0 ? 1 : int(frontier.size());
            for (int i = 0; i < parents * 10; ++i)
                table_.push_back(
                    {i % 10, before < 0 ? -1 : before + frontier[size_t(i / 10)], 0, 0});
            forced_.level(table_, first, int(table_.size()));
            frontier.clear();
            policy_.choose(table_, first, frontier);
            if (!frontier.empty()) seconds += saw(&CycleCosts::saw_level, int(frontier.size()));
        } while (!frontier.empty());
    }

    Device device_;
    ForcedAcceptance forced_;
    const AllowedRanks all_;
    TreePolicy policy_{kMaxAuto, all_, std::make_shared<CycleCosts>()};
    std::vector<Candidate> table_;
    int backlog_ = 1;
};

// Speedup of a fixed shape over plain decoding, on the same device and record.
double fixed_speedup(const Device& device, const TreeShape& shape) {
    ForcedAcceptance forced = recorded();
    const double seconds =
        device.verify(shape.nodes) + device.run(1) + (shape.levels - 1) * device.run(shape.top_k);
    return forced.tau(shape) * device.verify(1) / seconds;
}

TEST(TreePolicy, IsAtLeastAsGoodAsTheBestFixedShape) {
    for (const Device& device : {Device{0.001, 0.05}, Device{0.01, 0.1}, Device{0.05, 0.1},
                                 Device{0.15, 0.1}, Device{0.25, 0.17}, Device{0.3, 0.3}}) {
        double best = 1;
        for (const TreeShape& shape :
             {TreeShape{60, 10, 10}, TreeShape{60, 6, 10}, TreeShape{26, 6, 6}, TreeShape{16, 6, 4},
              TreeShape{8, 5, 2}, TreeShape{6, 5, 1}, TreeShape{4, 3, 1}, TreeShape{3, 2, 1},
              TreeShape{2, 1, 1}})
            best = std::max(best, fixed_speedup(device, shape));
        Simulation simulation(device);
        const Total total = simulation.run_texts();
        std::printf(
            "T(M) slope %.3f, level %.2f: %.3f of plain (best fixed %.3f), %.1f nodes, "
            "%.0f%% plain\n",
            device.slope, device.level, total.speedup(device), best, total.nodes / total.cycles,
            100 * total.plain / total.cycles);
        // Where little can be gained, a bad start may take long to make up for.
        EXPECT_GT(total.speedup(device), best > 1.5 ? best : 0.97);
    }
}

TEST(TreePolicy, LosesNextToNothingWhereNothingIsAccepted) {
    for (double slope : {0.001, 0.05, 0.25})
        for (double level : {0.05, 0.1, 0.3})
            for (int cycles : {128, 1000, 10000}) {
                const Device device{slope, level};
                Simulation simulation(device);
                simulation.forced().forbid();
                const Total total = simulation.run(cycles);
                EXPECT_GT(total.speedup(device), cycles == 128 ? 0.97 : 0.985)
                    << slope << " " << level << " " << cycles;
                EXPECT_GE(simulation.policy().account().balance, 0);
            }
}

TEST(TreePolicy, ComesBackWhenDraftsAreAcceptedAgain) {
    const Device device{0.02, 0.1};
    Simulation simulation(device);
    const double before = simulation.run(300).speedup(device);
    simulation.forced().forbid();
    const Total none = simulation.run(2000);
    EXPECT_GT(none.plain / none.cycles, 0.95);
    simulation.forced().rescale(5.5);
    simulation.run(1500);
    const double after = simulation.run(300).speedup(device);
    std::printf("speedup before %.2f, without acceptance %.3f, after %.2f\n", before,
                none.speedup(device), after);
    EXPECT_GT(after, 0.9 * before);
}

// The losses of the head, and cycles in which nothing was found, leave grafts their part of the
// account.
TEST(Account, AHeadThatFailsLeavesGraftsTheirPart) {
    Account account;
    const double first = account.balance, for_head = account.head_balance;
    while (account.head_balance > 0.3) account.settle(1, 1.3, Drafts::head);
    EXPECT_NEAR(account.balance - account.head_balance, first - for_head, 1e-9);
    const double before = account.balance, head_before = account.head_balance;
    account.settle(1, 1.001, Drafts::none);
    EXPECT_GT(account.balance, before);
    EXPECT_GT(account.head_balance, head_before);
    EXPECT_LT(account.head_balance - head_before, account.balance - before);
    const double head = account.head_balance;
    account.settle(4, 1.5, Drafts::grafts);
    EXPECT_LT(account.head_balance, head + 0.1) << "what grafts bring is theirs";
    account.begin_text();
    EXPECT_EQ(account.head_balance, for_head);
}

}  // namespace
}  // namespace aerie::test
