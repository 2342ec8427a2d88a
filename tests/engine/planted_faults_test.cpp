// The quick suites find the faults that they are for: each fault is planted in $AERIE_TEST_DEVICE,
// and the suites' own checks (engine/checks.h, ops/mapped_ids.h) must give a finding. A missing
// barrier cannot be planted here: tests/vulkan/validation_canary.cpp leaves one out under the
// validation layer, and tests/simt/model_test.cpp leaves one out in a kernel.
#include <gtest/gtest.h>

#include "engine/checks.h"
#include "engine/faulty_backend.h"
#include "ops/mapped_ids.h"

namespace aerie::test {
namespace {

bool on_cpu() {
    return test_device() == "cpu";
}

// On another device a quantised model, which has the CPU's bits; on the CPU f32, which has golden
// values.
struct Planted {
    explicit Planted(const Fault& fault) {
        const LoadOptions options = bundled_options(on_cpu() ? DType::F32 : DType::Q8_0);
        auto backend = std::make_unique<FaultyBackend>(open_device(options.device), fault);
        faulty = backend.get();
        model = std::make_unique<Bundled>(options, std::move(backend));
    }

    FaultyBackend* faulty;
    std::unique_ptr<Bundled> model;
};

DraftOptions small_tree() {
    DraftOptions draft = draft_options("eagle2");
    draft.tree = {16, 4, 4};
    return draft;
}

// The check of same_bits_test; on the CPU that of golden_test, on every eighth text.
std::string output_finding(Bundled& model) {
    if (on_cpu()) return golden_finding(run_golden(model, "none", draft_options("none"), 8));
    static const BitsRun want = [] {
        LoadOptions options = bundled_options(DType::Q8_0);
        options.device = "cpu";
        Bundled good(options);
        return run_for_bits(good);
    }();
    return bits_finding(want, run_for_bits(model));
}

struct Accepted {
    std::string finding;
    bool texts_differ = false;
};

// The check of acceptance_floor_test; on the CPU the tau of golden_test, on every eighth prompt.
Accepted accepted(Bundled& model) {
    if (on_cpu()) {
        const GoldenRun run = run_golden(model, "eagle2", draft_options("eagle2"), 8);
        return {golden_finding(run), run.unsafe > 0};
    }
    static const AcceptanceRun want = [] {
        LoadOptions options = bundled_options(DType::Q8_0);
        options.device = "cpu";
        Bundled good(options);
        return run_for_acceptance(good, small_tree(), 2, 32);
    }();
    const AcceptanceRun got = run_for_acceptance(model, small_tree(), 2, 32);
    return {acceptance_finding(want, got, true), got.ids != want.ids};
}

void expect_found(const std::string& finding) {
    std::printf("found: %s\n", finding.c_str());
    EXPECT_NE(finding, "");
}

TEST(PlantedFaults, NoneIsNoFinding) {
    Planted planted({});
    EXPECT_EQ(output_finding(*planted.model), "");
    EXPECT_EQ(accepted(*planted.model).finding, "");
    EXPECT_EQ(mapped_ids_finding(planted.model->backend()), "");
}

// The head's committed positions keep what drafts left in their slots. No text shows this fault.
TEST(PlantedFaults, StaleDraftKv) {
    Planted planted({});
    // Each cache has one page table. The target rotates first; anything else that rotates is the
    // head.
    Memory* target = nullptr;
    planted.faulty->fault().stale = [&](const KvLayer& kv, const Row& row) {
        if (!target) target = kv.page_table.memory;
        const bool committed = row.slot == row.prefix && row.position == row.prefix;
        return kv.page_table.memory != target && committed && row.position % 4 == 3;
    };
    const Accepted got = accepted(*planted.model);
    EXPECT_FALSE(got.texts_differ);
    expect_found(got.finding);
}

TEST(PlantedFaults, OneWrongRopeRow) {
    Planted planted({.rope_position = 5});
    expect_found(output_finding(*planted.model));
}

TEST(PlantedFaults, PageOffByOne) {
    Planted planted({.page_before = true});
    expect_found(output_finding(*planted.model));
}

TEST(PlantedFaults, SwappedIdsOfAReducedVocabulary) {
    Planted planted({.swapped_id = 17});
    expect_found(mapped_ids_finding(planted.model->backend()));
}

}  // namespace
}  // namespace aerie::test
