// Faults while a model runs: no memory, NaN, a caller with its own floating-point mode; and who
// owns what.
#include <gtest/gtest.h>

#include <cfenv>
#include <limits>
#include <numeric>

#include "backend/weight_rows.h"
#include "engine/bundled.h"
#include "engine/model.h"
#include "engine/watched_backend.h"
#include "io/damage.h"
#include "reference/matrix.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace aerie::test {
namespace {

const std::vector<int> kPrompt = {1, 300, 40, 50, 60};

Sampling with_penalties() {
    Sampling sampling = sampling_at(0.8f, 7);
    sampling.penalties = {1.3f, 0.1f, 0.3f};
    return sampling;
}

static_assert(!std::is_move_constructible_v<Model>);

TEST(Faults, ASessionNeedsNoMemoryThatItHasNotGot) {
    auto device = std::make_unique<WatchedBackend>("cpu");
    WatchedBackend& watched = *device;
    Bundled model(bundled_options(), std::move(device));
    const auto plain = model.drafting(draft_options("none"));
    watched.full = true;
    const std::vector<int> penalised = decode(*plain.session, kPrompt, 24, with_penalties());
    EXPECT_NE(penalised, decode(*plain.session, kPrompt, 24, sampling_at(0.8f, 7)));
    EXPECT_EQ(penalised, decode(*plain.session, kPrompt, 24, with_penalties()));
}

// A device limits a single allocation, and a cache may be half of all memory.
TEST(Faults, TheCacheIsAllocatedLayerByLayer) {
    WatchedBackend device("cpu");
    const KvShape shape{5, 48, DType::F16, 130};
    const KvPool pool(device, shape);
    const size_t layer = 2 * dense_bytes(DType::F16, 3 * kPageSize, 48);
    EXPECT_EQ(device.allocated.size(), 6u);
    EXPECT_EQ(std::count(device.allocated.begin(), device.allocated.end(), layer), 5);
    EXPECT_EQ(std::accumulate(device.allocated.begin(), device.allocated.end(), size_t(0)),
              shape.size_bytes());
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(pool.layer(i).k.offset_bytes, 0u);
        EXPECT_EQ(pool.layer(i).v.offset_bytes, layer / 2);
        EXPECT_EQ(pool.layer(i).v.memory, pool.layer(i).k.memory);
        EXPECT_TRUE(i == 0 || pool.layer(i).k.memory != pool.layer(i - 1).k.memory);
    }
}

// Logits have no log-probabilities if some are NaN, wherever the NaN stands.
TEST(Faults, LogprobsOfNanAreAnError) {
    for (int place : {0, 1, 4095}) {
        auto device = std::make_unique<WatchedBackend>("cpu");
        WatchedBackend& watched = *device;
        Bundled model(bundled_options(), std::move(device));
        const auto plain = model.drafting(draft_options("none"));
        watched.observe([&](const ObservedBackend::Seen& seen) {
            const Tensor out = seen.out;
            if (seen.op != "matmul" || out.cols != 4096) return;
            const float nan = std::numeric_limits<float>::quiet_NaN();
            for (int r = 0; r < out.rows; ++r)
                watched.write(out.row_range(r, 1).col_range(place, 1), &nan);
        });
        AnswerOptions answer;
        answer.with_logprobs = true;
        plain.session->begin(answer);
        const std::string error = error_of([&] { plain.session->prefill(kPrompt); });
        EXPECT_NE(error.find("weights are damaged"), std::string::npos) << error;
        plain.session->begin({});
        EXPECT_EQ(plain.session->prefill(kPrompt).tokens.size(), 1u);
    }
}

// Sets the mode that an audio host may set: denormals are flushed, sums are rounded up.
class OddEnvironment {
  public:
    OddEnvironment() {
        std::fegetenv(&before_);
        std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
        _mm_setcsr(_mm_getcsr() | 0x8040);  // flush to zero, denormals are zero
#endif
    }
    ~OddEnvironment() {
        std::fesetenv(&before_);
    }
    OddEnvironment(const OddEnvironment&) = delete;
    OddEnvironment& operator=(const OddEnvironment&) = delete;

  private:
    std::fenv_t before_;
};

struct Decoded {
    std::vector<int> ids;
    std::vector<float> logits;
    bool operator==(const Decoded&) const = default;
};

Decoded loaded_and_decoded(const LoadOptions& options) {
    Model model(ModelFiles::open(options), options);
    const auto drafting = model.start_session(draft_options("eagle2"));
    Decoded decoded;
    decoded.ids = decode(*drafting.session, kPrompt, 12, with_penalties());
    const TokenTree root(5);
    drafting.session->verify(root);
    decoded.logits.resize(4096);
    model.backend().read(drafting.session->logits().row_range(0, 1), decoded.logits.data());
    return decoded;
}

TEST(Faults, TheCallersFloatingPointModeChangesNoBit) {
    for (DType type : {DType::F16, DType::Q8_0, DType::Q4_0}) {
        LoadOptions options = bundled_options(type);
        options.context = 256;
        const Decoded calm = loaded_and_decoded(options);
        Decoded odd;
        {
            const OddEnvironment environment;
            odd = loaded_and_decoded(options);
            EXPECT_EQ(std::fegetround(), FE_UPWARD);
        }
        EXPECT_EQ(odd.ids, calm.ids) << name(type);
        EXPECT_TRUE(odd == calm) << name(type);
    }
}

TEST(Faults, TheCallersFloatingPointModeChangesNoTable) {
    const auto backend = open_device("cpu", {1});
    ModelConfig config;
    config.attention = {1, 1, 64};
    const auto table = [&] {
        const Vector rope = make_rope_table(*backend, 5000, config);
        std::vector<uint32_t> bits(5000 * 64);
        backend->read(rope, bits.data());
        return bits;
    };
    const auto calm = table();
    const OddEnvironment environment;
    EXPECT_EQ(table(), calm);
}

// Rows of weights as they are packed for devices that repack on the host.
TEST(Faults, TheCallersFloatingPointModeChangesNoPackedRow) {
    reference::Matrix values = reference::random_matrix(3, 64, 1, 1e-3f);
    for (int i = 0; i < 64; ++i) values[1][i] *= 1e-37f;  // denormals
    for (DType type : {DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0}) {
        const WeightBlock block{DType::F32, type, values.data.data(), 3, 64};
        const auto packed = [&] {
            WeightRows rows({&block, 1});
            std::vector<std::byte> all;
            for (int r = 0; r < 3; ++r)
                all.insert(all.end(), rows.row(r), rows.row(r) + size_bytes(type, 64));
            return all;
        };
        const auto calm = packed();
        const OddEnvironment environment;
        EXPECT_EQ(packed(), calm) << name(type);
    }
}

}  // namespace
}  // namespace aerie::test
