// Conversations by the bundled model's template, and whose text may become special tokens.
#include "text/chat_template.h"

#include <algorithm>

#include "io/damage.h"
#include "io/input_file.h"
#include "paths.h"
#include "text/write_model.h"

namespace aerie {
namespace {

using test::error_of;

Tokenizer tiny() {
    return Tokenizer::load(test::models_dir() / "aerie-tiny");
}

using Messages = std::vector<std::pair<std::string, std::string>>;

std::vector<int> chat(const Tokenizer& tokenizer, const Messages& messages) {
    Conversation conversation;
    for (const auto& [role, content] : messages) conversation.add(role, content);
    return encode_chat(tokenizer, render_chat(tokenizer, conversation));
}

TEST(ChatTemplate, OneQuestionIsAGoldenPrompt) {
    const Tokenizer tokenizer = tiny();
    std::vector<int> expected = tokenizer.encode("USER: How are you? ASSISTANT:");
    expected.insert(expected.begin(), tokenizer.bos());
    EXPECT_EQ(chat(tokenizer, {{"user", "How are you?"}}), expected);
}

TEST(ChatTemplate, AnswersEndWithEos) {
    const Tokenizer tokenizer = tiny();
    const std::vector<int> ids =
        chat(tokenizer, {{"user", "Hi"}, {"assistant", "Hello."}, {"user", "Bye </s>"}});
    std::vector<int> expected = {tokenizer.bos()};
    for (const int id : tokenizer.encode("USER: Hi ASSISTANT: Hello.")) expected.push_back(id);
    expected.push_back(tokenizer.eos());
    for (const int id : tokenizer.encode("USER: Bye </s> ASSISTANT:")) expected.push_back(id);
    EXPECT_EQ(ids, expected);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), tokenizer.eos()), 1);
    EXPECT_EQ(chat(tokenizer, {}), std::vector<int>{tokenizer.bos()});
}

TEST(ChatTemplate, WithoutOneSaysWhatToDo) {
    const test::TestFolder folder;
    const auto model = folder.write("tokenizer.model", test::ModelWriter{}.file());
    EXPECT_EQ(error_of([&] {
                  chat(Tokenizer::load(folder.path()), {{"user", "x"}});
              }),
              model.string() + ": the model has no chat template; give one with --template FILE");
    const auto config =
        folder.write("tokenizer_config.json", R"({"chat_template":"{{ bos_token "})");
    EXPECT_TRUE(error_of([&] {
                    chat(Tokenizer::load(folder.path()), {{"user", "x"}});
                }).starts_with(config.string() + ": chat_template:"));
}

// Every added token of every golden vocabulary, with each of its flags: in a user's message all are
// text, in an assistant's those that are not special may be read, in the template all are read.
TEST(ChatTemplate, NobodyElseWritesSpecialTokens) {
    const std::string echo =
        "{% for m in messages %}{{ m.content }}{% endfor %}{{ eos_token }}{{ bos_token }}";
    size_t seen = 0;
    for (const char* name :
         {"gpt2", "llama3", "qwen2", "deepseek", "o200k", "llama2-sp", "metaspace-sp"}) {
        const test::TestFolder folder;
        folder.write("tokenizer.json",
                     read_text(test::test_data_dir() / "tokenizers" / (std::string(name) + ".json"),
                               64 << 20));
        const Tokenizer tokenizer = Tokenizer::load(folder.path());
        std::vector<int> added, special;
        std::string all;
        for (int id = 0; id < tokenizer.size(); ++id) {
            if (!tokenizer.bpe().is_added(id)) continue;
            added.push_back(id);
            if (tokenizer.bpe().is_special(id)) special.push_back(id);
            all += std::string(tokenizer.bpe().text(id)) + " x\n";
        }
        ASSERT_FALSE(special.empty());
        const std::string bos(tokenizer.bpe().text(special[0]));
        const auto ids_of = [&](const std::string& role) {
            Conversation conversation;
            conversation.add(role, all);
            return encode_chat(tokenizer,
                               render_chat({echo, "echo"}, {{"bos_token", bos}}, conversation));
        };
        const auto count = [](const std::vector<int>& ids, const std::vector<int>& of) {
            return std::count_if(ids.begin(), ids.end(), [&](int id) {
                return std::find(of.begin(), of.end(), id) != of.end();
            });
        };
        EXPECT_EQ(count(ids_of("user"), added), 1) << name;
        EXPECT_EQ(count(ids_of("system"), added), 1) << name;
        EXPECT_EQ(count(ids_of("assistant"), special), 1) << name;
        EXPECT_EQ(ids_of("user").back(), special[0]);
        // In a text that is wholly the caller's own they are read; one is spelled with a space
        // before it.
        EXPECT_GE(count(tokenizer.encode(all, Recognised::all), added), std::ssize(added) - 1)
            << name;
        seen += added.size();
    }
    EXPECT_GE(seen, 30u);
}

// A token that is searched in normalised text, between a template's words and a user's.
TEST(ChatTemplate, NormalisedTokensKnowWhoWroteThem) {
    const Normaliser::Replace spaces{" ", "_"};
    const Normaliser normaliser({NormalForm::nfc, spaces});
    Vocabulary vocabulary;
    const char* const letters[] = {"a", "<", ">", "_", "\xC3\xA9", "e", "\xCC\x81"};
    for (int id = 0; id < 7; ++id) vocabulary.add(letters[id], id);
    const BpeTokenizer bpe(BpeTokenizer::Parts{
        .file = "t",
        .bpe = Bpe(std::move(vocabulary), {}, {}),
        .normaliser = normaliser,
        .added = AddedTokens({{.text = "< >", .id = 9, .normalised = true, .special = true}},
                             normaliser)});
    const auto encode = [&](const std::string& text, const std::string& labels) {
        return bpe.encode(text, Recognition{Recognised::all, labels});
    };
    const std::string all(1, char(Recognised::all)), none(1, char(Recognised::none));
    const auto labels = [&](const std::string& shape) {
        std::string made;
        for (const char c : shape) made += c == 't' ? all : none;
        return made;
    };
    EXPECT_EQ(encode("a< >a< >", labels("tttttuuu")), (std::vector<int>{0, 9, 0, 1, 3, 2}));
    EXPECT_EQ(encode("a< >a< >", labels("tuttttttt").substr(0, 8)),
              (std::vector<int>{0, 1, 3, 2, 0, 9}));
    // The user's combining mark joins the template's letter, so none of that stretch is read as a
    // token.
    EXPECT_EQ(encode("< >e\xCC\x81", labels("ttttuu")), (std::vector<int>{1, 3, 2, 4}));
    EXPECT_EQ(encode("< >e\xCC\x81", labels("tttttt")), (std::vector<int>{9, 4}));
}

// A system message is left out even where its text stands in the template by chance.
TEST(ChatTemplate, SaysWhetherItTakesASystemMessage) {
    const auto why = [](const std::string& text) {
        return why_no_system_message({text, "t"}, {}, "S");
    };
    EXPECT_EQ(why("{% for m in messages %}{{ m.content }}{% endfor %}"), "");
    EXPECT_EQ(why("USER: {{ messages[1].content }}"), "its chat template leaves it out");
    EXPECT_EQ(why("{{ raise_exception('No system.') }}"), "No system.");
}

TEST(ChatTemplate, AConversationsOwnVariablesAreReserved) {
    EXPECT_EQ(reserved_variable(Json::parse(R"({"enable_thinking":false,"documents":[]})", "x")),
              "");
    EXPECT_EQ(reserved_variable(Json()), "");
    EXPECT_EQ(reserved_variable(
                  Json::parse(R"({"tools":[],"messages":null,"add_generation_prompt":true})", "x")),
              "");
    for (const char* name : {"messages", "tools", "add_generation_prompt", "bos_token"})
        EXPECT_EQ(reserved_variable(Json::Object{{name, 5}}), name);
    EXPECT_NE(error_of([] {
                  read_conversation(R"({"messages":[{"role":"user","content":"a"}],)"
                                    R"("kwargs":{"messages":[]}})",
                                    "x");
              }).find("'kwargs' must not have 'messages'"),
              std::string::npos);
}

TEST(ChatTemplate, TextPartsAreJoined) {
    Conversation conversation = read_conversation(
        R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])",
        "x");
    join_text_parts(conversation, "x");
    EXPECT_EQ(conversation.messages.dump(), R"([{"role":"user","content":"ab"}])");
    for (const char* bad : {"3", R"([{"type":"image_url"}])", "[5]"}) {
        EXPECT_NE(error_of([&] {
                      Conversation wrong = read_conversation(
                          std::string(R"([{"role":"user","content":)") + bad + "}]", "file");
                      join_text_parts(wrong, "file");
                  }).find("file: the content of message 1"),
                  std::string::npos)
            << bad;
    }
}

// As the server does it: the answer goes on from the assistant's last message.
TEST(ChatTemplate, AnAnswerThatHasBegunGoesOn) {
    const Tokenizer tokenizer = tiny();
    Conversation conversation;
    conversation.add("user", "Hi");
    EXPECT_EQ(take_begun_answer(conversation), "");
    conversation.add("assistant", "Hello.");
    std::string begun = take_begun_answer(conversation);
    EXPECT_EQ(begun, "Hello.");
    jinja::Rendered chat = render_chat(tokenizer, conversation);
    append_begun_answer(tokenizer, chat, begun);
    EXPECT_EQ(chat.text, "<s>USER: Hi ASSISTANT: Hello.");
    // A message that calls a tool is whole, and so is one without text.
    for (const char* more : {R"("content":"I look","tool_calls":[{}])", R"("content":null)"}) {
        Conversation whole =
            read_conversation(R"([{"role":"assistant",)" + std::string(more) + "}]", "file");
        EXPECT_EQ(take_begun_answer(whole), "");
        EXPECT_EQ(whole.messages.array()->size(), 1u) << more;
    }
}

TEST(ChatTemplate, ReadsConversations) {
    EXPECT_EQ(read_conversation(R"([{"role":"user","content":"x"}])", "c").messages.array()->size(),
              1u);
    EXPECT_EQ(read_conversation(R"({"messages":[{"role":"user","content":"x"}],"tools":[1]})", "c")
                  .tools.array()
                  ->size(),
              1u);
    EXPECT_EQ(error_of([] { read_conversation("3", "c"); }),
              "c: neither a conversation nor a list of messages");
    for (const char* none : {R"({"messages":3})", R"({"messages":[]})", R"({"mesages":[]})", "[]"})
        EXPECT_EQ(error_of([&] { read_conversation(none, "c"); }),
                  "c: 'messages' must be a list of one or more messages");
    EXPECT_EQ(error_of([] {
                  read_conversation(R"({"messages":[{"role":"user","content":"x"}],"kwargs":[]})",
                                    "c");
              }),
              "c: 'kwargs' is no object");
    EXPECT_EQ(error_of([] { read_conversation(R"([{"role":"user"}])", "c"); }),
              "c: message 1 has no 'content'");
    EXPECT_EQ(error_of([] { read_conversation(R"([{"role":"user","content":"x"},"y"])", "c"); }),
              "c: message 2 has no 'role'");
}

}  // namespace
}  // namespace aerie
