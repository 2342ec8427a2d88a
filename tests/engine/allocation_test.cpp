// The decode loop allocates nothing once it runs: operator new is counted during its cycles.
#include <gtest/gtest.h>

#include <deque>

#include "engine/bundled.h"
#include "host_memory.h"

namespace aerie::test {
namespace {

constexpr int kWarmUp = 3, kCycles = 12;

// Costs at which a tree sized by measurement has nodes; measured costs may say that no draft pays
// here.
const MeasuredCosts kCheapDrafts{{{1, 3e-4}, {64, 3.1e-4}}, {{1, 1e-7}, {10, 2e-7}}, true};

// Runs `count` cycles and returns the number of their nodes.
int run_cycles(Session& session, int count) {
    int nodes = 0;
    for (int i = 0; i < count; ++i) {
        const TokenTree tree = session.propose();
        const NodeList choices = session.verify(tree);
        session.commit(tree, accept(tree, choices));
        nodes += tree.size();
    }
    return nodes;
}

TEST(Allocation, TheCounterCounts) {
    std::vector<int> values;
    begin_count();
    values.resize(10);
    values.resize(1000);
    EXPECT_EQ(host_requests(), 2u);
}

TEST(Allocation, NoneInTheDecodeLoop) {
    DraftOptions lookup_auto = draft_options("lookup");
    lookup_auto.tree.reset();
    const auto cut = [](const char* method) {
        DraftOptions options;
        options.method = method;
        return options;
    };
    const DraftOptions drafters[] = {draft_options("none"),
                                     draft_options("lookup"),
                                     draft_options("chain"),
                                     draft_options("eagle1"),
                                     draft_options("eagle2"),
                                     auto_options(),
                                     draft_options("lookahead"),
                                     lookup_auto,
                                     cut("chain"),
                                     cut("eagle1"),
                                     cut("lookahead")};
    for (DType type : {DType::F16, DType::Q8_0}) {
        Bundled model(bundled_options(type));
        for (const DraftOptions& draft : drafters)
            for (float temperature : {0.0f, 0.8f}) {
                auto drafting = model.drafting(draft);
                if (CostAware* costs = drafting.drafter->cost_aware(); costs && !draft.tree)
                    costs->set_costs(kCheapDrafts);
                Session& session = *drafting.session;
                Sampling sampling = sampling_at(temperature, 3);
                if (temperature > 0) {
                    sampling.penalties = {1.2f, 0.1f, 0.1f};
                    sampling.filters.top_k = 50;
                    sampling.filters.top_p = 0.95f;
                }
                AnswerOptions answer = sampling;
                answer.with_logprobs = true;
                session.begin(answer);
                session.prefill(model.encode(sixty_prompts()[2]));
                run_cycles(session, kWarmUp);
                begin_count();
                const int nodes = run_cycles(session, kCycles);
                const size_t allocations = host_requests();
                EXPECT_EQ(allocations, 0u) << name(type) << ", drafter " << draft.method
                                           << (draft.tree ? "" : " auto") << ", T " << temperature;
                EXPECT_GE(nodes, draft.method == "none" ? kCycles : kCycles + 1);
            }
    }
}

TEST(Allocation, NoneInRoundsOfSeveralSequences) {
    constexpr int kSequences = 3;
    DraftOptions lookup_auto = draft_options("lookup");
    lookup_auto.tree.reset();
    LoadOptions options = bundled_options(DType::Q8_0);
    options.sequences_in_pass = kSequences;
    Bundled model(options);
    const BatchLimits limits = model.limits();
    for (const DraftOptions& draft :
         {draft_options("none"), draft_options("eagle2"), auto_options(), lookup_auto}) {
        const auto drafter = model.model().drafter(draft, limits);
        if (CostAware* costs = drafter->cost_aware(); costs && !draft.tree)
            costs->set_costs(kCheapDrafts);
        KvPool kv(model.backend(), kv_shape(model.target().config(), limits, drafter->reach()));
        Batch batch(model.backend(), model.target(), kv, *drafter, limits);
        std::deque<Sequence> sequences;
        Cycle cycles[kSequences];
        Cycle* together[kSequences];
        for (int i = 0; i < kSequences; ++i) {
            Sequence& sequence =
                sequences.emplace_back(kv, *drafter, model.target().config().vocab, limits.context);
            sequence.begin(sampling_at(i == 0 ? 0.0f : 0.8f, uint64_t(i)));
            sequence.append(model.encode(sixty_prompts()[size_t(i)]));
            batch.prefill(sequence);
            cycles[i].sequence = &sequence;
            together[i] = &cycles[i];
        }
        const auto run = [&](int rounds) {
            for (int i = 0; i < rounds; ++i) {
                batch.propose(together);
                for (std::span<Cycle* const> left = together; !left.empty();) {
                    const size_t count = batch.cycles_of_pass(left);
                    run_pass(batch, left.first(count));
                    left = left.subspan(count);
                }
            }
        };
        run(kWarmUp);
        begin_count();
        run(kCycles);
        EXPECT_EQ(host_requests(), 0u) << draft.method << (draft.tree ? "" : " auto");
    }
}

}  // namespace
}  // namespace aerie::test
