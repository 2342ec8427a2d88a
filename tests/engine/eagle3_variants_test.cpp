// Every published form of EAGLE-3 heads, with random weights, against the head in doubles: states
// and logits of text rows and of two levels of a tree.
#include <gtest/gtest.h>

#include "draft/heads/head.h"
#include "engine/eagle3_rows.h"
#include "io/damage.h"

namespace aerie::test {
namespace {

// A matrix in device memory.
class OnDevice {
  public:
    OnDevice(Backend& be, DType type, int rows, int columns)
        : be_(be),
          memory_(be.allocate(dense_bytes(type, rows, columns))),
          tensor_(dense(memory_.get(), type, rows, columns)) {}
    OnDevice(Backend& be, const Matrix& values)
        : OnDevice(be, DType::F32, values.rows, values.cols) {
        be.write(tensor_, values.data.data());
    }

    Tensor tensor() const { return tensor_; }
    Matrix read() const {
        Matrix values(tensor_.rows, tensor_.cols);
        be_.read(tensor_, values.data.data());
        return values;
    }

  private:
    Backend& be_;
    Buffer memory_;
    Tensor tensor_;
};

class Eagle3Variants : public testing::Test {
  protected:
    // States and logits of the head as it drafts, read from files.
    Computed<Matrix> drafted(const Form& form, const Tensors& tensors) {
        folder_.write("head/config.json", config_of(form).dump());
        folder_.write("head/model.safetensors", safetensors_of(stored(form, tensors)));
        LoadOptions options = bundled_options(DType::F32);
        options.head = folder_.path() / "head";
        options.context = 256;
        options.draft = draft_options("eagle3");
        Bundled model(options);
        const DraftPlan plan =
            model.model().files().draft_plan(options.draft, options, model.limits());
        DraftSource source{model.backend(), model.target(), plan, nullptr};
        source.weights = load_draft_weights(source);
        const auto levels =
            plan.head->kind->levels(source, reach_of(dynamic_growth(options.draft)));
        EXPECT_EQ(levels->feature_columns(), int(form.taps.size()) * kTargetHidden);
        EXPECT_EQ(levels->state_columns(), form.hidden);
        EXPECT_EQ(levels->vocab(), form.vocab);
        expect_ids(model.backend(), *levels, form);
        return run(model.backend(), *levels, form);
    }
    // The largest difference of an element, over the largest element of its pass; the worst of all
    // passes.
    static double worst(const std::vector<Matrix>& got, const std::vector<Exact>& want) {
        EXPECT_EQ(got.size(), want.size());
        double worst = 0;
        for (size_t pass = 0; pass < want.size(); ++pass) {
            double difference = 0, largest = 0;
            EXPECT_EQ(got[pass].data.size(), want[pass].data.size());
            for (size_t i = 0; i < want[pass].data.size(); ++i) {
                const double apart = std::abs(double(got[pass].data[i]) - want[pass].data[i]);
                if (!(apart <= difference)) difference = apart;  // a NaN stays
                largest = std::max(largest, std::abs(want[pass].data[i]));
            }
            if (!(difference / largest <= worst)) worst = difference / largest;
        }
        return worst;
    }
    static double worst(const Computed<Matrix>& got, const Computed<Exact>& want) {
        return std::max(worst(got.states, want.states), worst(got.logits, want.logits));
    }
    void expect_alike(const char* what, const Form& form) {
        const Tensors tensors = random_tensors(form);
        const Computed<Matrix> got = drafted(form, tensors);
        const Computed<Exact> want = in_doubles(reference_of(form, tensors), form, passes(0));
        const double states = worst(got.states, want.states),
                     logits = worst(got.logits, want.logits);
        std::printf("%-28s states %.1e, logits %.1e\n", what, states, logits);
        EXPECT_LE(states, kSame) << what;
        EXPECT_LE(logits, kSame) << what;
    }

    static constexpr double kSame = 4e-6, kOther = 1e-3;

  private:
    static void expect_ids(Backend& be, const LevelModel& levels, const Form& form) {
        const Tensor ids = levels.target_ids();
        ASSERT_EQ(bool(ids), form.vocab != kTargetVocab);
        if (!ids) return;
        ASSERT_EQ(ids.cols, form.vocab);
        std::vector<int32_t> got(size_t(form.vocab));
        be.read(ids, got.data());
        for (int id = 0; id < form.vocab; ++id) EXPECT_EQ(got[size_t(id)], target_id(form, id));
    }
    static Computed<Matrix> run(Backend& be, LevelModel& levels, const Form& form) {
        KvPages pages = levels.kv().begin();
        pages.hold(kText + kChildren + int(std::size(kParents)));
        Computed<Matrix> outcome;
        const Matrix features = features_of(form);
        int first = 0, level = 0;
        for (const Pass& pass : passes(pages.sequence())) {
            const int count = int(pass.rows.size());
            const OnDevice rows(be, DType::I32, count, kRowInts);
            be.write(rows.tensor(), pass.rows.data());
            const OnDevice state(be, DType::F32, count, form.hidden);
            const OnDevice logits(be, DType::F32, count, form.vocab);
            const bool is_text = pass.parents.empty();
            const OnDevice input(be, is_text ? rows_of(features, text_rows(first, count))
                                             : rows_of(outcome.states.back(), pass.parents));
            if (is_text)
                levels.read(state.tensor(), input.tensor(), {rows.tensor()});
            else
                levels.forward(state.tensor(), {input.tensor()}, {rows.tensor()}, ++level);
            levels.logits(logits.tensor(), state.tensor(), level, 1);
            outcome.states.push_back(state.read());
            outcome.logits.push_back(logits.read());
            first += count;
        }
        return outcome;
    }

    const TestFolder folder_;
};

Form llama3_scaled(Form form) {
    form.theta = 5e5;
    form.scaling = {RopeScaling::Kind::llama3, 8, 1, 4, 64};
    return form;
}

Form with_everything() {
    Form form;
    form.hidden = 192;
    form.intermediate = 96;
    form.heads = 6;
    form.kv_heads = 3;
    form.head_dim = 48;
    form.taps = {0, 2, 3, 6};
    form.norms_taps = form.norms_residual = form.own_embedding = form.all_biases = true;
    form.feeds_normed = form.qk_norm = true;
    return llama3_scaled(form);
}

TEST_F(Eagle3Variants, Original) {
    expect_alike("original", {});
}

TEST_F(Eagle3Variants, Norms) {
    expect_alike("fc_norm", {.norms_taps = true});
    expect_alike("norm_output", {.feeds_normed = true});
    expect_alike("EAGLE-3.1", {.norms_taps = true, .feeds_normed = true});
    expect_alike("norm_before_fc", {.norms_features = true});
    expect_alike("normed residual", {.norms_residual = true});
}

TEST_F(Eagle3Variants, Widths) {
    expect_alike("own embedding", {.own_embedding = true});
    expect_alike("narrower", {.hidden = 64, .own_embedding = true});
    expect_alike("wider", {.hidden = 384, .own_embedding = true});
}

TEST_F(Eagle3Variants, Taps) {
    expect_alike("one tap", {.taps = {3}});
    expect_alike("two taps", {.taps = {2, 5}});
    expect_alike("four taps", {.taps = {0, 2, 5, 6}, .norms_taps = true});
    expect_alike("a tap twice", {.taps = {2, 3, 3}});
}

TEST_F(Eagle3Variants, Attention) {
    expect_alike("as many kv heads", {.heads = 4, .kv_heads = 4});
    expect_alike("one kv head", {.heads = 8, .kv_heads = 1});
    expect_alike("larger heads", {.heads = 4, .kv_heads = 2, .head_dim = 96});
    expect_alike("smaller heads", {.heads = 3, .kv_heads = 3, .head_dim = 32});
    expect_alike("norms of q and k", {.qk_norm = true});
    expect_alike("q, k, v biases", {.qkv_bias = true});
    expect_alike("every bias", {.all_biases = true});
}

TEST_F(Eagle3Variants, Positions) {
    expect_alike("theta 5e5", {.theta = 5e5});
    expect_alike("linear", {.scaling = {.kind = RopeScaling::Kind::linear, .factor = 3}});
    expect_alike("llama3", llama3_scaled({}));
}

TEST_F(Eagle3Variants, Vocabularies) {
    expect_alike("whole vocabulary", {.vocab = kTargetVocab});
    expect_alike("the target's LM head", {.vocab = kTargetVocab, .own_lm_head = false});
}

TEST_F(Eagle3Variants, AllAtOnce) {
    expect_alike("all", with_everything());
}

// Mistakes that a reader may make differ by far more than the tolerance, in either form.
class Eagle3Mistakes : public Eagle3Variants {
  protected:
    void begin(const Form& form) {
        form_ = form;
        tensors_ = random_tensors(form);
        got_ = drafted(form, tensors_);
    }
    Eagle3 head() const { return reference_of(form_, tensors_); }
    template <class Change>
    void expect_seen(const char* what, const Change& change) {
        Eagle3 other = head();
        change(other);
        expect_far(what, in_doubles(other, form_, passes(0)));
    }
    void expect_far(const char* what, const Computed<Exact>& other) const {
        const double difference = worst(got_, other);
        std::printf("%-28s %.1e\n", what, difference);
        EXPECT_GE(difference, kOther) << what;
    }
    void expect_frequencies_seen(const char* what, double theta, const RopeScaling& scaling) {
        expect_seen(what, [&](Eagle3& head) {
            head.frequencies = reference::rope_frequencies(theta, form_.size_of_head(), scaling);
        });
    }

    Form form_;
    Tensors tensors_;
    Computed<Matrix> got_;
};

TEST_F(Eagle3Mistakes, OfWeightsAreSeen) {
    for (const Form& form : {Form{}, with_everything()}) {
        begin(form);
        expect_seen("norms changed places",
                    [](Eagle3& head) { std::swap(head.input_norm, head.hidden_norm); });
        expect_seen("another norm before the MLP",
                    [](Eagle3& head) { head.ffn_norm = head.hidden_norm; });
        expect_seen("the other residual",
                    [](Eagle3& head) { head.adds_to_normed = !head.adds_to_normed; });
        expect_seen("taps changed places", [](Eagle3& head) {
            const int last = head.fc.cols - kTargetHidden;
            for (int r = 0; r < head.fc.rows; ++r)
                std::swap_ranges(head.fc[r], head.fc[r] + kTargetHidden, head.fc[r] + last);
        });
        expect_seen("state before embedding", [&](Eagle3& head) {
            for (Exact* part : {&head.q, &head.k, &head.v})
                for (int r = 0; r < part->rows; ++r)
                    std::rotate((*part)[r], (*part)[r] + form.hidden, (*part)[r] + part->cols);
        });
        expect_frequencies_seen("another theta", 2 * form.theta, form.scaling);
    }
}

TEST_F(Eagle3Mistakes, OfWhatIsOptionalAreSeen) {
    begin({});
    expect_seen("normed states", [](Eagle3& head) { head.feeds_normed = true; });
    begin({.norms_features = true});
    expect_seen("no norm of the taps", [](Eagle3& head) { head.features_norm = {}; });
    begin(with_everything());
    expect_seen("states that are not normed", [](Eagle3& head) { head.feeds_normed = false; });
    expect_seen("no norm of q", [](Eagle3& head) { head.q_norm = {}; });
    expect_seen("no tap norms", [](Eagle3& head) { head.tap_norms.clear(); });
    expect_seen("tap norms changed places",
                [](Eagle3& head) { std::swap(head.tap_norms[0], head.tap_norms[1]); });
    expect_frequencies_seen("no scaling", form_.theta, {});
    for (Exact Eagle3::*bias : {&Eagle3::q_bias, &Eagle3::k_bias, &Eagle3::v_bias, &Eagle3::o_bias,
                                &Eagle3::gate_bias, &Eagle3::up_bias, &Eagle3::down_bias})
        expect_seen("a bias left out", [&](Eagle3& head) { head.*bias = {}; });
}

TEST_F(Eagle3Mistakes, OfLevelsAreSeen) {
    begin({});
    const Eagle3 head = this->head();
    expect_far("state through the output norm",
               in_doubles(head, form_, passes(0), [&](const Exact& state) {
                   Exact out = state;
                   for (int m = 0; m < out.rows; ++m) {
                       double squares = 0;
                       for (int i = 0; i < out.cols; ++i) squares += out[m][i] * out[m][i];
                       for (int i = 0; i < out.cols; ++i)
                           out[m][i] *= head.output_norm[0][i] / std::sqrt(squares / out.cols);
                   }
                   return out;
               }));
    std::vector<Pass> changed = passes(0);
    for (Eagle3Run::Row& row : changed[3].plain) row.seen.push_back(kText + 1);
    expect_far("a node sees another branch", in_doubles(head, form_, changed));
    changed = passes(0);
    for (Eagle3Run::Row& row : changed[3].plain) row.seen.pop_back();
    expect_far("a node does not see its parent", in_doubles(head, form_, changed));
    changed = passes(0);
    for (Eagle3Run::Row& row : changed[3].plain) ++row.position;
    expect_far("positions one too far", in_doubles(head, form_, changed));
    changed = passes(0);
    std::swap(changed[3].parents[0], changed[3].parents[1]);
    expect_far("the state of another parent", in_doubles(head, form_, changed));
}

}  // namespace
}  // namespace aerie::test
