// The table of kinds of heads, and what the methods make of it.
#include "draft/heads/kinds.h"

#include <gtest/gtest.h>

#include <set>

namespace aerie {
namespace {

using Texts = std::vector<std::string>;

TEST(Kinds, AreToldApartByEveryName) {
    std::set<std::string> names, endings, methods;
    for (const DraftHead& head : draft_heads()) {
        EXPECT_TRUE(names.insert(head.name).second) << head.name;
        EXPECT_TRUE(endings.insert(head.ending).second) << head.ending;
        EXPECT_TRUE(methods.insert(head.method.name).second) << head.method.name;
        EXPECT_EQ(&default_draft_method(&head), &draft_method(head.method.name));
        EXPECT_EQ(head_of_method(head.method.name), &head);
        for (const std::string& method : head.also) EXPECT_EQ(draft_method(method).name, method);
    }
    EXPECT_EQ(default_draft_method(nullptr).name, "auto");
    EXPECT_EQ(head_of_method("grafted"), nullptr);
}

// Only the first row may have no way to recognise its files: it takes what is left.
TEST(Kinds, AreRecognised) {
    for (const DraftHead& head : draft_heads())
        EXPECT_EQ(!head.has_config && !head.has_tensors, &head == &draft_heads().front())
            << head.name;
    ModelSource source;
    source.config = {Json::Object{{"model_type", "llama"}}, "config.json"};
    EXPECT_EQ(&head_kind(source), &draft_heads().front());
    source.config.json = Json::Object{{"draft_vocab_size", 8}};
    EXPECT_EQ(head_kind(source).name, "an EAGLE-3 head");
}

TEST(Kinds, GiveTheMethodsTheirNamesInOrder) {
    Texts names;
    for (const DraftMethod& method : draft_methods()) names.push_back(method.name);
    EXPECT_EQ(names, (Texts{"none", "lookup", "lookahead", "chain", "eagle1", "eagle2", "eagle3",
                            "medusa", "hydra", "grafted", "model", "auto"}));
}

TEST(Kinds, SayWhichHeadsFit) {
    const Texts all = {"-eagle", "-eagle3", "-medusa", "-hydra", "-draft"};
    EXPECT_EQ(draft_method("chain").beside, all);
    EXPECT_EQ(draft_method("grafted").beside, all);
    EXPECT_EQ(draft_method("eagle1").beside, (Texts{"-eagle", "-eagle3"}));
    EXPECT_EQ(draft_method("eagle2").beside, Texts{"-eagle"});
    EXPECT_EQ(draft_method("eagle3").beside, Texts{"-eagle3"});
    EXPECT_EQ(draft_method("hydra").beside, Texts{"-hydra"});
    EXPECT_EQ(draft_method("model").beside, Texts{"-draft"});
    EXPECT_EQ(draft_method("eagle2").wants, "an EAGLE-1/2 head or an EAGLE-3 head");
    EXPECT_EQ(draft_method("eagle3").wants, "an EAGLE-3 head");
    EXPECT_EQ(draft_method("model").needs, DraftNeeds::language_model);
    EXPECT_EQ(draft_method("grafted").needs, DraftNeeds::head);
    for (const DraftHead& head : draft_heads())
        EXPECT_EQ(draft_method(head.method.name).is_replayed, !head.recorded.empty()) << head.name;
}

TEST(Kinds, AreNamedInMessages) {
    EXPECT_EQ(heads_where([](const DraftHead& head) { return head.set_taps != nullptr; }),
              "EAGLE-3 heads");
    EXPECT_EQ(heads_where([](const DraftHead& head) { return head.has_draft_vocab; }),
              "EAGLE-1/2 heads");
    EXPECT_EQ(heads_where([](const DraftHead& head) { return head.complete != nullptr; }),
              "EAGLE-3 heads or Medusa heads or Hydra heads");
}

}  // namespace
}  // namespace aerie
