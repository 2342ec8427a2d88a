// The decode loop allocates nothing once it runs: operator new is counted during its cycles.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "engine/bundled.h"

namespace {

std::atomic<bool> counting = false;
std::atomic<int> allocations = 0;

void* allocate(std::size_t size, std::size_t alignment = alignof(std::max_align_t)) {
    if (counting) ++allocations;
    const std::size_t bytes =
        (std::max<std::size_t>(size, 1) + alignment - 1) / alignment * alignment;
    if (void* block = std::aligned_alloc(alignment, bytes)) return block;
    throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) {
    return allocate(size);
}
void* operator new[](std::size_t size) {
    return allocate(size);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
    return allocate(size, std::size_t(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
    return allocate(size, std::size_t(alignment));
}
void operator delete(void* block) noexcept {
    std::free(block);
}
void operator delete[](void* block) noexcept {
    std::free(block);
}
void operator delete(void* block, std::size_t) noexcept {
    std::free(block);
}
void operator delete[](void* block, std::size_t) noexcept {
    std::free(block);
}
void operator delete(void* block, std::align_val_t) noexcept {
    std::free(block);
}
void operator delete[](void* block, std::align_val_t) noexcept {
    std::free(block);
}
void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
    std::free(block);
}
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept {
    std::free(block);
}

namespace aerie::test {
namespace {

constexpr int kWarmUp = 3, kCycles = 12;

// The cycles' nodes; their allocations are in the counter.
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
    allocations = 0;
    values.resize(10);
    EXPECT_EQ(allocations, 0) << "while it is off";
    counting = true;
    values.resize(1000);
    counting = false;
    EXPECT_EQ(allocations, 1);
}

TEST(Allocation, NoneInTheDecodeLoop) {
    const DraftOptions drafters[] = {draft_options("none"),   draft_options("lookup"),
                                     draft_options("chain"),  draft_options("eagle1"),
                                     draft_options("eagle2"), auto_options()};
    for (DType type : {DType::F16, DType::Q8_0}) {
        Bundled model(bundled_options(type));
        for (const DraftOptions& draft : drafters)
            for (float temperature : {0.0f, 0.8f}) {
                auto drafting = model.drafting(draft);
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
                allocations = 0;
                counting = true;
                const int nodes = run_cycles(session, kCycles);
                counting = false;
                EXPECT_EQ(allocations, 0) << name(type) << ", drafter " << draft.method
                                          << (draft.tree ? "" : " auto") << ", T " << temperature;
                EXPECT_GE(nodes, draft.method == "none" ? kCycles : kCycles + 1);
            }
    }
}

}  // namespace
}  // namespace aerie::test
