// No drafter: the tree is the root alone, and the loop decodes plainly.
#include "draft/drafter.h"

namespace aerie {

namespace {

class None final : public Drafter {
  public:
    DraftReach reach() const override { return {}; }
    void observe(Tensor, std::span<const int>, int) override {}
    TokenTree propose(const DraftContext& context) override { return TokenTree(context.pending); }
};

}  // namespace

std::unique_ptr<Drafter> make_none() {
    return std::make_unique<None>();
}

}  // namespace aerie
