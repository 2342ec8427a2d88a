// Cooperative matrices, forced on a driver that runs on the CPU: which shapes are chosen, whether
// matmul uses them for every number of rows that it must, and whether drafted text equals plain
// text. The op tests run over them too.
#include "vulkan/cooperative.h"

#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "engine/bundled.h"
#include "vulkan/device.h"
#include "vulkan/test_device.h"
#include "vulkan/vulkan_backend.h"

namespace aerie::test {
namespace {

using vulkan::ComponentType;
using vulkan::CooperativeProperties;
using vulkan::MatrixShape;

CooperativeProperties kind(uint32_t m, uint32_t n, uint32_t k,
                           ComponentType element = ComponentType::f16,
                           ComponentType sum = ComponentType::f32) {
    CooperativeProperties p;
    p.m = m, p.n = n, p.k = k;
    p.a = p.b = element;
    p.c = p.result = sum;
    p.scope = 3;
    return p;
}

std::array<uint32_t, 3> chosen(const std::vector<CooperativeProperties>& all,
                               ComponentType element = ComponentType::f16,
                               ComponentType sum = ComponentType::f32) {
    const MatrixShape shape =
        vulkan::matmul_shape(all, element, sum, element == ComponentType::f16 ? 16 : 32);
    return {shape.m, shape.n, shape.k};
}

TEST(MatrixShapes, OfLeastWasteWithFewRows) {
    using Shape = std::array<uint32_t, 3>;
    EXPECT_EQ(chosen({}), Shape());
    EXPECT_EQ(chosen({kind(16, 16, 16)}), (Shape{16, 16, 16}));
    EXPECT_EQ(chosen({kind(16, 16, 16), kind(16, 8, 8), kind(16, 8, 16)}), (Shape{16, 8, 16}));
    const auto s8 = ComponentType::s8, s32 = ComponentType::s32;
    const auto bytes = kind(8, 16, 32, s8, s32);
    EXPECT_EQ(chosen({kind(8, 16, 16), bytes}, s8, s32), (Shape{8, 16, 32}));
    EXPECT_EQ(chosen({kind(16, 16, 16), bytes}, s8, s32), Shape()) << "no floats of that shape";
}

TEST(MatrixShapes, NoneThatMatmulCannotUse) {
    auto saturating = kind(16, 16, 16), wide_scope = saturating, mixed = saturating;
    saturating.saturates = VK_TRUE;
    wide_scope.scope = 2;
    mixed.b = ComponentType::s8;
    for (const auto& p :
         {saturating, wide_scope, mixed, kind(64, 16, 16), kind(16, 4, 16), kind(16, 16, 64),
          kind(16, 24, 16), kind(16, 16, 16, ComponentType::f16, ComponentType::f16)})
        EXPECT_EQ(chosen({p}), (std::array<uint32_t, 3>{}));
}

class Cooperative : public testing::TestWithParam<DType> {
  protected:
    void SetUp() override {
        const auto instance = vulkan::Instance::get();
        if (!instance || !vulkan::has_test_device())
            GTEST_SKIP() << "SKIPPED: no Vulkan device here";
        vulkan::DeviceChoices choices;
        choices.cooperative_matrices = true;
        if (!vulkan::Device(instance, vulkan::test_device_index(*instance), choices)
                 .matrix_shape(GetParam()))
            GTEST_SKIP() << "SKIPPED: vulkan:0 or this build has no cooperative matrices";
    }

    std::unique_ptr<Bundled> model(std::optional<bool> cooperative) {
        vulkan::DeviceChoices choices;
        choices.cooperative_matrices = cooperative;
        choices.profile = true;
        return std::make_unique<Bundled>(bundled_options(GetParam()),
                                         vulkan::open_test_device(choices));
    }

    static std::vector<int> generate(Bundled& model, const DraftOptions& draft,
                                     const Request& request) {
        auto drafting = model.drafting(draft);
        return model.run(*drafting.session, request).ids;
    }

    // The kernels of matmul that the device has run.
    static std::set<std::string> kernels(Bundled& model) {
        std::set<std::string> names;
        for (const OpTime& time : model.backend().op_times())
            if (time.op.starts_with("matmul")) names.insert(time.op);
        return names;
    }
};

TEST_P(Cooperative, DraftedTextEqualsPlain) {
    const auto forced = model(true);
    const std::string name_of_kernel = std::string("matmul_") + name(GetParam()) + "_cooperative";
    const auto prompts = sixty_prompts();
    DraftOptions eagle = draft_options("eagle2");
    eagle.tree = {24, 4, 6};
    for (const auto& [prompt, temperature] : {std::pair(3u, 0.0f), {47u, 0.8f}}) {
        Request request = forced->request(forced->encode(prompts[prompt]), 24,
                                          sampling_at(temperature, 1000 + prompt));
        request.eos_ids.clear();
        const auto plain = generate(*forced, draft_options("none"), request);
        EXPECT_EQ(plain.size(), 24u);
        EXPECT_EQ(generate(*forced, eagle, request), plain) << prompts[prompt];
    }
    // The order of float sums differs between kernels, so f16 must use matrices for every number of
    // rows.
    EXPECT_TRUE(kernels(*forced).count(name_of_kernel));
    if (GetParam() != DType::F16) return;
    EXPECT_EQ(kernels(*forced), (std::set<std::string>{name_of_kernel, "matmul_f16_row_cooperative",
                                                       "matmul_f16_normed_row_cooperative"}));
}

// For f16, too, the matmuls that read a single row normalise and split it, and run the epilogue.
class CooperativeHalves : public Cooperative {};

TEST_P(CooperativeHalves, TakeSixDispatchesALayer) {
    const auto forced = model(true);
    auto drafting = forced->drafting(draft_options("none"));
    Session& session = *drafting.session;
    session.begin({});
    session.prefill(forced->encode("Once upon a time"));
    for (int cycle = 0; cycle < 3; ++cycle) {
        const long before = forced->backend().command_counts().dispatches;
        const TokenTree tree = session.propose();
        session.commit(tree, accept(tree, session.verify(tree)));
        const long layers = forced->target().config().layers;
        const long count = forced->backend().command_counts().dispatches - before;
        EXPECT_LE(count, 6 * layers + 12) << cycle;  // 12 belong to no layer
        EXPECT_GT(count, 5 * layers) << cycle;
    }
}

// Vulkan's functions have no closure.
PFN_vkCreateComputePipelines real_create;
std::mutex guard;
std::multiset<uint32_t> asked;  // required subgroup size of each pipeline; 0: any

VkResult create_noted(VkDevice device, VkPipelineCache cache, uint32_t count,
                      const VkComputePipelineCreateInfo* info, const VkAllocationCallbacks* with,
                      VkPipeline* made) {
    const auto* width =
        static_cast<const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo*>(info->stage.pNext);
    const bool whole =
        info->stage.flags & VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    {
        const std::lock_guard lock(guard);
        EXPECT_EQ(whole, width != nullptr);
        asked.insert(width ? width->requiredSubgroupSize : 0);
    }
    return real_create(device, cache, count, info, with, made);
}

// The constants of kernels with matrices are for subgroups of this width and no other.
TEST_P(CooperativeHalves, HaveTheSubgroupsThatTheyAreCutFor) {
    vulkan::DeviceChoices choices;
    choices.cooperative_matrices = true;
    vulkan::Traits traits;
    choices.pretend = [&](vulkan::Traits& is) { traits = is; };
    choices.patch = [](VolkDeviceTable& vk) {
        real_create = vk.vkCreateComputePipelines;
        vk.vkCreateComputePipelines = create_noted;
    };
    asked.clear();
    Bundled model(bundled_options(GetParam()), vulkan::open_test_device(choices));
    Request request = model.request(model.encode("Once upon a time there was a"), 2);
    generate(model, draft_options("none"), request);
    const uint32_t width = required_subgroup(traits);
    if (width == 0) GTEST_SKIP() << "SKIPPED: " << traits.name << " cannot be asked for a width";
    EXPECT_GE(asked.count(width), 3u);  // kernels for a prompt, for a token, and with its norm
    EXPECT_GE(asked.count(0), 1u);      // attention, and more
    EXPECT_EQ(asked.count(width) + asked.count(0), asked.size());
}

TEST_P(Cooperative, IsLeftToGpusUnlessForced) {
    const auto instance = vulkan::Instance::get();
    if (instance->devices()[vulkan::test_device_index(*instance)].traits.type !=
        VK_PHYSICAL_DEVICE_TYPE_CPU)
        GTEST_SKIP() << "SKIPPED: vulkan:0 is a GPU";
    const auto usual = model({});
    Request request = usual->request(usual->encode("Once upon a time there was a"), 2);
    generate(*usual, draft_options("eagle2"), request);
    EXPECT_FALSE(kernels(*usual).empty());
    for (const std::string& kernel : kernels(*usual))
        EXPECT_EQ(kernel.find("cooperative"), std::string::npos) << kernel;
}

INSTANTIATE_TEST_SUITE_P(Types, CooperativeHalves, testing::Values(DType::F16));
INSTANTIATE_TEST_SUITE_P(Types, Cooperative,
                         testing::Values(DType::F16, DType::Q8_0, DType::Q4_0, DType::Q4_K,
                                         DType::Q6_K),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace aerie::test
