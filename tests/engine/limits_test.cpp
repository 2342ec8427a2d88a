// Limits of devices and the demands of models: heads of any shape beside a target, devices with
// small limits, too little memory, ids that no model has.
#include <gtest/gtest.h>

#include "draft/heads/random_head.h"
#include "engine/bundled.h"
#include "engine/costs.h"
#include "engine/model.h"
#include "engine/watched_backend.h"
#include "io/damage.h"
#include "measure/compared_model.h"
#include "model/make/random_weights.h"
#include "model/make/shapes.h"

namespace aerie::test {
namespace {

const std::vector<int> kPrompt = {1, 300, 40, 50, 60};

struct HeadShape {
    int intermediate = 704;
    AttentionShape attention = {4, 2, 64};
};

// The bundled target beside a head of random weights.
ModelFiles files_with_head(const LoadOptions& options, const HeadShape& shape) {
    ModelFiles files = ModelFiles::open(options);
    HeadConfig head = *files.head_config;
    head.intermediate = shape.intermediate;
    head.attention = shape.attention;
    files.head_config = head;
    files.head->path = "random head";
    files.head->tensors = random_head("random head", head, DType::F16, 1);
    return files;
}

// Each of some shapes is wider in one way than anything in the target.
const HeadShape kHeadShapes[] = {
    {.intermediate = 65536},     {.intermediate = 8192},     {.intermediate = 32},
    {.attention = {64, 64, 64}}, {.attention = {64, 1, 64}}, {.attention = {1, 1, 256}},
    {.attention = {2, 2, 256}},  {.attention = {4, 2, 16}},  {.attention = {256, 1, 16}},
};

TEST(Limits, AHeadOfAnyShapeDraftsForATarget) {
    for (DType type : {DType::F16, DType::Q8_0})
        for (const HeadShape& shape : kHeadShapes) {
            LoadOptions options = bundled_options(type);
            options.context = 256;
            Model model(files_with_head(options, shape), options);
            const auto plain = model.start_session(make_none());
            const auto drafted = model.start_session(draft_options("eagle2"));
            const ModelConfig& head = *model.files().head_config;
            EXPECT_GE(model.backend().reserved().widest,
                      std::max(2 * head.intermediate, head.qkv_columns()));
            EXPECT_EQ(decode(*drafted.session, kPrompt, 12), decode(*plain.session, kPrompt, 12));
        }
}

// No caller has to remember to reserve: making a model and a session does it.
TEST(Limits, WhoeverMakesAModelReserves) {
    const LoadOptions options = bundled_options(DType::Q8_0);
    const ModelFiles files = files_with_head(options, {.intermediate = 4096});
    const BatchLimits limits{128, DType::F16, 16};
    const auto backend = open_device(test_device(), {1});
    const auto target = make_target(*backend, files.config, files.target.tensors, options.weights,
                                    target_limits(limits));
    const DraftOptions draft = draft_options("eagle2");
    const DraftPlan plan = files.draft_plan(draft, options, limits);
    const auto drafter = make_drafter({*backend, *target, plan, nullptr});
    Session session(*backend, *target, *drafter, limits);
    EXPECT_EQ(backend->reserved().widest, 2 * 4096);
    EXPECT_GE(backend->reserved().context, limits.context);
    EXPECT_EQ(decode(session, kPrompt, 8).size(), 8u);
}

struct Size {
    int Limits::*member;
    const char* named;
};
constexpr Size kSizes[] = {{&Limits::rows, "rows"},       {&Limits::top_k, "candidates"},
                           {&Limits::widest, "columns"},  {&Limits::vocab, "vocabulary"},
                           {&Limits::context, "(-c)"},    {&Limits::heads, "attention heads"},
                           {&Limits::queries, "KV head"}, {&Limits::head_dim, "attention head"},
                           {&Limits::places, "experts"}};

TEST(Limits, OfADeviceAreHeldBeforeAnythingIsWritten) {
    const LoadOptions options = bundled_options();
    const ModelFiles files = ModelFiles::open(options);
    const Limits wanted = files.limits(options, open_device("cpu", {1})->capabilities());
    for (const Size& size : kSizes) {
        auto device = std::make_unique<WatchedBackend>("cpu");
        WatchedBackend& watched = *device;
        watched.said.most = wanted;
        watched.said.most.*size.member -= 1;
        const std::string error = error_of([&] {
            const auto target = make_target(watched, files.config, files.target.tensors, {},
                                            {wanted.rows, wanted.context});
        });
        EXPECT_NE(error.find(size.named), std::string::npos) << error;
        EXPECT_NE(error.find(options.model.string()), std::string::npos) << error;
        EXPECT_NE(error_of([&] { watched.reserve(wanted); }).find(size.named), std::string::npos);
        EXPECT_TRUE(watched.allocated.empty());
        EXPECT_EQ(watched.uploads, 0);
        EXPECT_NE(error_of([&] {
                      Model(ModelFiles::open(options), options, std::move(device));
                  }).find(size.named),
                  std::string::npos);
    }
}

TEST(Limits, OfADeviceHoldForHeadsToo) {
    const LoadOptions options = bundled_options();
    const ModelFiles files = files_with_head(options, {.attention = {4, 2, 512}});
    auto device = std::make_unique<WatchedBackend>("cpu");
    device->said.most.head_dim = 256;
    const BatchLimits limits{128, DType::F16, 16};
    const auto target =
        make_target(*device, files.config, files.target.tensors, {}, target_limits(limits));
    const int uploads = device->uploads;
    const std::string error = error_of([&] {
        const DraftOptions draft = draft_options("eagle2");
        const DraftPlan plan = files.draft_plan(draft, options, limits);
        (void)make_drafter({*device, *target, plan, nullptr});
    });
    EXPECT_EQ(error, "random head: 512 elements of an attention head are more than the 256 of cpu");
    EXPECT_EQ(device->uploads, uploads);
}

TEST(Limits, MoreThanTheHostsMemoryIsRefusedAtOnce) {
    LoadOptions options = bundled_options();
    auto device = std::make_unique<WatchedBackend>("cpu");
    ModelFiles files = ModelFiles::open(options);
    device->said.memory_bytes = files.plan(options, *device).total() - 1;
    WatchedBackend& watched = *device;
    const std::string error = error_of([&] { files.reserve(options, watched); });
    EXPECT_NE(error.find("(-c)"), std::string::npos) << error;
    EXPECT_TRUE(watched.allocated.empty());
    ++watched.said.memory_bytes;
    files.reserve(options, watched);
}

// A tensor that no layer uses takes no memory.
TEST(Limits, APlanCountsWhatIsUsed) {
    const LoadOptions options = bundled_options();
    ModelFiles files = ModelFiles::open(options);
    const auto backend = open_device("cpu", {1});
    const size_t before = files.plan(options, *backend).target_weights;
    std::vector<TensorShape> tensors = target_tensors(files.config);
    tensors.push_back({"model.unused.weight", {4096, 4096}});
    files.target.tensors = random_checkpoint("more", tensors, DType::F16, 1);
    EXPECT_EQ(files.plan(options, *backend).target_weights, before);
}

TEST(Limits, IdsThatTheModelLacksAreRefused) {
    Bundled model;
    const auto plain = model.drafting(draft_options("none"));
    const int vocab = model.target().config().vocab;
    for (int id : {-1, vocab, INT_MAX, INT_MIN}) {
        plain.session->begin({});
        EXPECT_THROW(plain.session->prefill(std::vector<int>{1, id, 2}), UsageError);
        plain.session->prefill(std::vector<int>{1, vocab - 1});
        TokenTree tree(5);
        tree.add(id, 0);
        EXPECT_THROW(plain.session->verify(tree), UsageError);
    }
    ComparedModel compared(ModelFiles::open(bundled_options()), bundled_options(),
                           open_device("cpu", {1}));
    const std::vector<int> text = {1, vocab};
    EXPECT_THROW(compared.run(text, 0, 2, ComparedModel::Inputs::own, [](size_t, Tensor) {}),
                 UsageError);
}

TEST(Limits, CostsAreMeasuredOfASmallVocabulary) {
    LoadOptions options = bundled_options();
    options.context = 128;
    ShapeChanges few;
    few.vocab = 16;
    Model model(ModelFiles::random("few", model_shape("aerie-tiny", few), options), options);
    const auto drafting = model.start_session(auto_options());
    const MeasuredCosts costs =
        measure_costs(*drafting.session, *drafting.drafter->cost_aware(), 0.9);
    EXPECT_GT(costs.verify.size(), 2u);
}

}  // namespace
}  // namespace aerie::test
