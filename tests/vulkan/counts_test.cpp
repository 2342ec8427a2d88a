// Counts the submissions, waits and copies of a cycle on a device with memory of its own. They are
// the host's costs there; the times of a driver that runs on the CPU do not show them.
#include <gtest/gtest.h>

#include <deque>

#include "engine/bundled.h"
#include "vulkan/device.h"
#include "vulkan/test_device.h"
#include "vulkan/vulkan_backend.h"

namespace aerie::test {
namespace {

// Counts that CommandCounts does not have, of all devices.
struct Calls {
    long waits = 0, copies = 0, regions = 0;
} calls;
PFN_vkResetFences real_reset;
PFN_vkCmdCopyBuffer real_copy;

void count_calls(VolkDeviceTable& vk) {
    real_reset = vk.vkResetFences;
    real_copy = vk.vkCmdCopyBuffer;
    vk.vkResetFences = [](VkDevice device, uint32_t count, const VkFence* fences) {
        ++calls.waits;
        return real_reset(device, count, fences);
    };
    vk.vkCmdCopyBuffer = [](VkCommandBuffer list, VkBuffer from, VkBuffer to, uint32_t count,
                            const VkBufferCopy* regions) {
        ++calls.copies;
        calls.regions += count;
        real_copy(list, from, to, count, regions);
    };
}

std::unique_ptr<Backend> open_staged() {
    vulkan::DeviceChoices choices;
    choices.split = 8;  // the kernels of GPUs
    choices.allow_unified = false;
    choices.submission_work = 1e15;  // no submission is cut for taking long
    choices.patch = count_calls;
    return vulkan::open_test_device(choices);
}

struct Counts {
    long submissions = 0, waits = 0, copies = 0, regions = 0, dispatches = 0;
};

class CycleCounts : public testing::Test {
  protected:
    void SetUp() override {
        if (!vulkan::has_test_device()) GTEST_SKIP() << "SKIPPED: no Vulkan device here";
        model_.emplace(bundled_options(DType::Q8_0), open_staged());
    }

    template <class Work>
    Counts counts_of(const Work& work) {
        const auto now = [&] {
            const CommandCounts device = model_->backend().command_counts();
            return Counts{device.submissions, calls.waits, calls.copies, calls.regions,
                          device.dispatches};
        };
        const Counts before = now();
        work();
        const Counts after = now();
        return {after.submissions - before.submissions, after.waits - before.waits,
                after.copies - before.copies, after.regions - before.regions,
                after.dispatches - before.dispatches};
    }

    // Calls see(cycle, counts) for each cycle of a short text.
    template <class See>
    void for_cycles(const DraftOptions& draft, const Sampling& sampling, const See& see) {
        auto drafting = model_->drafting(draft);
        Session& session = *drafting.session;
        AnswerOptions answer;
        answer.sampling = sampling;
        session.begin(answer);
        session.prefill(model_->encode("Once upon a time"));
        for (int cycle = 0; cycle < 12; ++cycle)
            see(cycle, counts_of([&] {
                    const TokenTree tree = session.propose();
                    session.commit(tree, accept(tree, session.verify(tree)));
                }));
    }

    std::optional<Bundled> model_;
};

const Sampling kSamplings[] = {{}, {.filters = {.temperature = 0.8f}, .penalties = {}, .seed = 3}};

TEST_F(CycleCounts, OfAPlainToken) {
    for (const Sampling& sampling : kSamplings)
        for_cycles(draft_options("none"), sampling, [&](int cycle, const Counts& counts) {
            EXPECT_EQ(counts.submissions, 1) << cycle;
            EXPECT_EQ(counts.waits, 1) << cycle;
            EXPECT_EQ(counts.copies, 1) << cycle;
        });
}

// The dispatches of a layer: norm, qkv and rotation; attention; its merge; its output; norm, gates
// and ups; down.
TEST_F(CycleCounts, OfALayer) {
    const int layers = model_->target().config().layers;
    for_cycles(draft_options("none"), {}, [&](int cycle, const Counts& counts) {
        EXPECT_LE(counts.dispatches, 6 * layers + 8) << cycle;  // 8 belong to no layer
        EXPECT_GT(counts.dispatches, 5 * layers) << cycle;
    });
}

TEST_F(CycleCounts, OfATree) {
    for (const Sampling& sampling : kSamplings)
        for_cycles(draft_options("eagle2"), sampling, [&](int cycle, const Counts& counts) {
            EXPECT_LE(counts.submissions, 2) << cycle;
            EXPECT_LE(counts.waits, 2) << cycle;
            EXPECT_EQ(counts.copies, 2) << cycle;
            EXPECT_EQ(counts.regions, 2) << cycle;
        });
}

TEST_F(CycleCounts, OfATreeThatTheHostDecides) {
    int levels = 0, most = 0;
    DraftOptions draft = draft_options("eagle2");
    draft.tree.reset();
    draft.on_level = [&](auto&&...) { ++levels; };
    for (const Sampling& sampling : kSamplings)
        for_cycles(draft, sampling, [&](int cycle, const Counts& counts) {
            EXPECT_LE(counts.submissions, levels + 1) << cycle;
            EXPECT_LE(counts.waits, levels + 1) << cycle;
            EXPECT_LE(counts.regions, levels + 1) << cycle;
            most = std::max(most, levels);
            levels = 0;
        });
    EXPECT_GT(most, 1);
}

// Several sequences share each submission: one of the target, and one for each level of the head.
TEST_F(CycleCounts, OfSeveralSequences) {
    LoadOptions options = bundled_options(DType::Q8_0);
    options.sequences_in_pass = 3;
    model_.emplace(options, open_staged());
    const BatchLimits limits = model_->limits();
    for (const std::string method : {"none", "eagle2"}) {
        DraftOptions draft = draft_options(method);
        draft.tree = TreeShape{20, 5, 4};  // three of them fit into a pass
        const auto drafter = model_->model().drafter(draft, limits);
        KvPool kv(model_->backend(), kv_shape(model_->target().config(), limits, drafter->reach()));
        Batch batch(model_->backend(), model_->target(), kv, *drafter, limits);
        std::deque<Sequence> sequences;
        std::vector<Cycle> cycles(3);
        std::vector<Cycle*> together;
        for (Cycle& cycle : cycles) {
            Sequence& sequence = sequences.emplace_back(
                kv, *drafter, model_->target().config().vocab, limits.context);
            sequence.begin({});
            sequence.append(model_->encode(sixty_prompts()[sequences.size()]));
            batch.prefill(sequence);
            cycle.sequence = &sequence;
            together.push_back(&cycle);
        }
        for (int round = 0; round < 8; ++round) {
            const Counts counts = counts_of([&] {
                batch.propose(together);
                run_pass(batch, together);
            });
            EXPECT_LE(counts.submissions, method == "none" ? 1 : draft.tree->levels + 1) << round;
            EXPECT_EQ(counts.waits, counts.submissions) << round;
        }
    }
}

// A whole matrix is copied as one region, a part of its columns as one region per row; either is
// one copy.
TEST_F(CycleCounts, OfARead) {
    Backend& be = model_->backend();
    const Buffer memory = be.allocate(40 * 64 * 4);
    const Tensor whole = dense(memory.get(), DType::F32, 40, 64);
    std::vector<float> values(40 * 64), got(values.size());
    for (size_t i = 0; i < values.size(); ++i) values[i] = float(i);
    be.write(whole, values.data());
    const Counts all = counts_of([&] { be.read(whole, got.data()); });
    EXPECT_EQ(got, values);
    EXPECT_EQ(all.copies, 1);
    EXPECT_EQ(all.regions, 1);
    const Tensor part = whole.col_range(8, 16);
    const Counts some = counts_of([&] { be.read(part, got.data()); });
    EXPECT_EQ(some.copies, 1);
    EXPECT_EQ(some.regions, 40);
    for (int r = 0; r < 40; ++r)
        for (int c = 0; c < 16; ++c)
            EXPECT_EQ(got[size_t(r * 16 + c)], values[size_t(r * 64 + 8 + c)]) << r << ", " << c;
}

}  // namespace
}  // namespace aerie::test
