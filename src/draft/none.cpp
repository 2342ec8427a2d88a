// No drafter: the tree is the root alone, so the loop decodes plainly.
#include "draft/methods.h"
#include "draft/stateless.h"

namespace aerie {

namespace {

class None final : public StatelessDrafter {
  public:
    DraftReach reach() const override { return {}; }
    TokenTree propose(const DraftRequest& request) override {
        return TokenTree(request.tokens.back());
    }
};

}  // namespace

std::unique_ptr<Drafter> make_none() {
    return std::make_unique<None>();
}

DraftMethod none_method() {
    DraftMethod method;
    method.name = kNoDrafts;
    method.help = "plain decoding";
    method.reach = [](const DraftPlan&) { return DraftReach{}; };
    method.is_replayed = true;
    method.takes_tree = method.has_published = false;
    method.make = [](const DraftSource&) { return make_none(); };
    return method;
}

}  // namespace aerie
