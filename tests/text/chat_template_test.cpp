// The one known chat template, and models without it.
#include "paths.h"
#include "text/chat_template.h"

#include "io/damage.h"
#include "io/input_file.h"
#include "text/write_model.h"

namespace aerie {
namespace {

using test::error_of;

Tokenizer tiny() {
    return Tokenizer::load(test::models_dir() / "aerie-tiny");
}

TEST(ChatTemplate, OneQuestionIsAGoldenPrompt) {
    const Tokenizer tokenizer = tiny();
    std::vector<int> expected = tokenizer.encode("USER: How are you? ASSISTANT:");
    expected.insert(expected.begin(), tokenizer.bos());
    EXPECT_EQ(apply_chat_template(tokenizer, {{"user", "How are you?"}}), expected);
}

TEST(ChatTemplate, AnswersEndWithEos) {
    const Tokenizer tokenizer = tiny();
    const std::vector<int> ids = apply_chat_template(
        tokenizer, {{"user", "Hi"}, {"assistant", "Hello."}, {"user", "Bye </s>"}});
    std::vector<int> expected = {tokenizer.bos()};
    for (const int id : tokenizer.encode("USER: Hi ASSISTANT: Hello.")) expected.push_back(id);
    expected.push_back(tokenizer.eos());
    for (const int id : tokenizer.encode("USER: Bye </s> ASSISTANT:")) expected.push_back(id);
    EXPECT_EQ(ids, expected);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), tokenizer.eos()), 1);
    EXPECT_EQ(apply_chat_template(tokenizer, {}), std::vector<int>{tokenizer.bos()});
}

TEST(ChatTemplate, RefusesOtherRoles) {
    EXPECT_EQ(error_of([] {
                  apply_chat_template(tiny(), {{"system", "x"}});
              }),
              "role 'system', expected user or assistant");
}

TEST(ChatTemplate, RefusesUnknownTemplates) {
    const test::TestFolder folder;
    folder.write("tokenizer.model", test::ModelWriter{}.file());
    const auto problem = [&] {
        return error_of([&] {
            apply_chat_template(Tokenizer::load(folder.path()), {{"user", "x"}});
        });
    };
    EXPECT_EQ(problem(), "tokenizer_config.json: no chat template, so --chat cannot be used");
    folder.write("tokenizer_config.json", "{\"chat_template\":\"{{ bos_token }} \"}");
    EXPECT_EQ(problem(), "tokenizer_config.json: --chat does not know this model's chat template");
}

}  // namespace
}  // namespace aerie
