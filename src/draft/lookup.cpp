// Prompt lookup: what followed the text's last tokens where they stood before is likely to follow
// again (Saxena 2023, "Prompt Lookup Decoding").
#include <algorithm>

#include "draft/methods.h"
#include "draft/stateless.h"

namespace aerie {

namespace {

constexpr int kLongestMatch = 4;

// Where the tokens that follow the newest earlier place of the text's last `length` tokens begin;
// -1: those stand nowhere else.
int follows_match(std::span<const int> tokens, int length) {
    const int end = int(tokens.size());
    for (int at = end - length - 1; at >= 0; --at)
        if (std::equal(tokens.end() - length, tokens.end(), tokens.begin() + at))
            return at + length;
    return -1;
}

class Lookup final : public StatelessDrafter {
  public:
    explicit Lookup(int length) : length_(length) {}

    DraftReach reach() const override { return {length_ + 1, length_, {}}; }

    TokenTree propose(const DraftRequest& request) override {
        TokenTree tree(request.tokens.back());
        const int longest = std::min(kLongestMatch, int(request.tokens.size()) - 1);
        for (int length = longest; length > 0; --length)
            if (const int from = follows_match(request.tokens, length); from >= 0) {
                for (int i = 0; i < length_; ++i)
                    tree.add(token_at(request.tokens, tree, from + i), i);
                break;
            }
        return tree;
    }

  private:
    // Beyond the text its guesses go on: what repeats is taken to repeat again.
    static int token_at(std::span<const int> tokens, const TokenTree& tree, int at) {
        const int root = int(tokens.size()) - 1;
        return at < root ? tokens[size_t(at)] : tree.tokens[size_t(at - root)];
    }

    int length_;
};

}  // namespace

DraftMethod lookup_method() {
    DraftMethod method;
    method.name = "lookup";
    method.help = "what followed the same words earlier in the text; needs no head";
    method.reach = [](const DraftPlan& plan) { return Lookup(plan.options.chain_length).reach(); };
    method.make = [](const DraftSource& source) {
        return std::make_unique<Lookup>(source.plan.options.chain_length);
    };
    return method;
}

}  // namespace aerie
