// A language model as a LevelModel: here the target itself drafts for itself.
#pragma once

#include "draft/grown.h"

namespace aerie::test {

class LanguageLevels final : public LevelModel {
  public:
    LanguageLevels(const DraftSource& source, Target& model, const GrownReach& reach)
        : be_(source.backend),
          model_(model),
          kv_(be_, {model.config().layers, model.config().kv_columns(), source.plan.kv,
                    reach.slots(source.plan.context)}) {
        TensorPlan plan;
        plan.add(normed_, DType::F32, reach.rows(source.plan.pass_rows), model.config().hidden);
        memory_ = plan.allocate(be_);
    }

    int token_lead() const override { return 0; }
    int state_columns() const override { return 0; }
    int feature_columns() const override { return 0; }
    int vocab() const override { return model_.config().vocab; }
    KvPool& kv() override { return kv_; }

    void read(Tensor, Tensor, Rows rows) override { run(rows); }
    void forward(Tensor, Tensor, Rows rows, int) override { run(rows); }
    void logits(Tensor out, Tensor, int) override {
        be_.run(Matmul{out, normed_.row_range(passed_ - out.rows, out.rows), model_.lm_head()});
    }

  private:
    void run(Rows rows) {
        passed_ = rows.count();
        TargetPass pass;
        pass.rows = rows;
        pass.kv = &kv_;
        pass.taps = taps_;
        pass.features = normed_.row_range(0, passed_);
        model_.forward(pass);
    }

    Backend& be_;
    Target& model_;
    Taps taps_ = {model_.config().layers};  // what the LM head reads
    KvPool kv_;
    Buffer memory_;
    Tensor normed_;
    int passed_ = 0;
};

}  // namespace aerie::test
