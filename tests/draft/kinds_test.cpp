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
        EXPECT_EQ(default_draft_method(&head, {}).name, "grafted");
        DraftOptions options;
        options.tree = TreeShape{};
        EXPECT_EQ(&default_draft_method(&head, options), &draft_method(head.method.name));
        DraftOptions fixed;
        fixed.static_tree = TreePaths{};
        const DraftMethod& chosen = default_draft_method(&head, fixed);
        EXPECT_TRUE(chosen.takes_tree_file || chosen.name == "grafted") << chosen.name;
        EXPECT_EQ(head_of_method(head.method.name), &head);
        for (const std::string& method : head.also) EXPECT_EQ(draft_method(method).name, method);
    }
    EXPECT_EQ(default_draft_method(nullptr, {}).name, "best");
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

// Reports and help list the methods of heads, then those of draft models, each in order of the
// table; "best" is the last of all.
TEST(Kinds, GiveTheTableTheirMethodsInOrder) {
    Texts names, want;
    for (const DraftMethod& method : draft_methods())
        if (head_of_method(method.name)) names.push_back(method.name);
    for (const DraftNeeds needs : {DraftNeeds::head, DraftNeeds::language_model})
        for (const DraftHead& head : draft_heads())
            if (head.needs == needs) want.push_back(head.method.name);
    EXPECT_EQ(names, want);
    EXPECT_EQ(draft_methods().front().name, kNoDrafts);
    EXPECT_EQ(draft_methods().back().name, "best");
}

TEST(Kinds, SayWhichHeadsFit) {
    Texts all;
    for (const DraftHead& head : draft_heads()) {
        all.push_back(head.ending);
        const DraftMethod& own = draft_method(head.method.name);
        EXPECT_EQ(own.beside, Texts{head.ending});
        EXPECT_EQ(own.needs, head.needs);
        EXPECT_EQ(own.is_replayed, !head.recorded.empty()) << head.name;
        EXPECT_EQ(own.wants.find(head.name), 0u) << own.wants;
    }
    EXPECT_EQ(draft_method("chain").beside, all);
    EXPECT_EQ(draft_method("grafted").beside, all);
    EXPECT_EQ(draft_method("grafted").needs, DraftNeeds::head);
    Texts beside = draft_method("eagle1").beside;
    beside.resize(2);
    EXPECT_EQ(beside, (Texts{"-eagle", "-eagle3"}));
    const std::string wants = draft_method("eagle2").wants;
    EXPECT_TRUE(wants.starts_with("an EAGLE-1/2 head or an EAGLE-3 head")) << wants;
}

TEST(Kinds, AreNamedInMessages) {
    EXPECT_EQ(heads_where([](const DraftHead& head) { return !head.recorded.empty(); }),
              "EAGLE-1/2 heads or EAGLE-3 heads");
    EXPECT_EQ(heads_where([](const DraftHead& head) { return head.has_draft_vocab; }),
              "EAGLE-1/2 heads");
}

}  // namespace
}  // namespace aerie
