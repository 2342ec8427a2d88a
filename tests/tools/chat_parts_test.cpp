// The parts of `aerie chat` that need neither a model nor a terminal.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "chat_line.h"
#include "core/error.h"
#include "dialogue.h"
#include "io/damage.h"
#include "io/input_file.h"
#include "line_history.h"
#include "shading.h"

namespace aerie {
namespace {

using test::TestFolder;
using Kind = ChatLine::Kind;

// All lines as one text; fails the test if the text is complete before the last of them.
ChatInput::Text text_of(const std::vector<std::string>& lines) {
    ChatInput input;
    for (size_t i = 0; i < lines.size(); ++i)
        EXPECT_EQ(input.add(lines[i]), i + 1 == lines.size()) << lines[i];
    return input.take();
}

std::string refusal(const std::string& line) {
    try {
        read_chat_line({.text = line});
    } catch (const UsageError& error) {
        return error.what();
    }
    return "";
}

TEST(ChatInput, IsALineOrSeveral) {
    EXPECT_EQ(text_of({"one"}).text, "one");
    EXPECT_EQ(text_of({""}).text, "");
    EXPECT_EQ(text_of({"one\\", "two\\", "three"}).text, "one\ntwo\nthree");
    EXPECT_EQ(text_of({"\\", "two"}).text, "\ntwo");
}

TEST(ChatInput, IsABlock) {
    EXPECT_EQ(text_of({"\"\"\"", "one", "", "two\\", "\"\"\""}).text, "one\n\ntwo\\");
    EXPECT_EQ(text_of({"\"\"\"one", "two\"\"\""}).text, "one\ntwo");
    EXPECT_EQ(text_of({"\"\"\"one\"\"\""}).text, "one");
    EXPECT_EQ(text_of({"\"\"\"", "\"\"\""}).text, "");
    EXPECT_TRUE(text_of({"\"\"\"/exit\"\"\""}).is_block);
    EXPECT_EQ(text_of({"say \"\"\""}).text, "say \"\"\"") << "in the middle it is a text";
}

TEST(ChatInput, IsTakenOnce) {
    ChatInput input;
    EXPECT_FALSE(input.has_begun());
    EXPECT_FALSE(input.add("\"\"\"one"));
    EXPECT_TRUE(input.has_begun());
    EXPECT_EQ(input.take().text, "one");
    EXPECT_FALSE(input.has_begun());
    EXPECT_TRUE(input.add("two"));
    const ChatInput::Text two = input.take();
    EXPECT_EQ(two.text, "two");
    EXPECT_FALSE(two.is_block);
}

TEST(ChatLine, IsAMessageOrACommand) {
    EXPECT_EQ(read_chat_line({.text = "  \t"}).kind, Kind::nothing);
    EXPECT_EQ(read_chat_line({.text = "Hello /undo"}).text, "Hello /undo");
    EXPECT_EQ(read_chat_line({.text = " /undo"}).kind, Kind::message);
    EXPECT_EQ(read_chat_line({.text = "/undo", .is_block = true}).kind, Kind::message);
    EXPECT_EQ(read_chat_line({.text = "/undo  "}).kind, Kind::undo);
    const ChatLine system = read_chat_line({.text = "/system  Be brief.\nAlways. "});
    EXPECT_EQ(system.kind, Kind::system);
    EXPECT_EQ(system.text, "Be brief.\nAlways.");
    EXPECT_EQ(read_chat_line({.text = "/save my file"}).text, "my file");
}

TEST(ChatLine, SwitchesOnOffOrTheOtherWay) {
    for (const auto& [name, kind] :
         {std::pair("/draft", Kind::draft), {"/shade", Kind::shade}, {"/stats", Kind::stats}}) {
        EXPECT_EQ(read_chat_line({.text = name}).kind, kind);
        EXPECT_EQ(read_chat_line({.text = name}).on, std::nullopt);
        EXPECT_EQ(read_chat_line({.text = std::string(name) + " on"}).on, true);
        EXPECT_EQ(read_chat_line({.text = std::string(name) + " off"}).on, false);
        EXPECT_NE(refusal(std::string(name) + " of").find("on or off, not 'of'"),
                  std::string::npos);
    }
}

TEST(ChatLine, RefusesWhatItDoesNotKnow) {
    EXPECT_NE(refusal("/foo bar").find("'/foo' is no command"), std::string::npos);
    EXPECT_NE(refusal("/").find("'/' is no command"), std::string::npos);
    EXPECT_NE(refusal("/save").find("/save FILE"), std::string::npos);
    EXPECT_NE(refusal("/retry now").find("takes nothing"), std::string::npos);
}

TEST(ChatLine, HelpNamesAllCommands) {
    for (const char* name : {"/system", "/retry", "/undo", "/save", "/load", "/draft", "/shade",
                             "/stats", "/help", "/exit"})
        EXPECT_NE(("\n" + chat_help()).find(std::string("\n") + name), std::string::npos) << name;
}

Dialogue three_turns() {
    return {.system = "s", .turns = {{"a", "1"}, {"b", "2"}, {"c", {}}}};
}

TEST(Dialogue, IsAConversationAndBack) {
    const Conversation all = three_turns().conversation();
    EXPECT_EQ(all.messages.dump(),
              R"([{"role":"system","content":"s"},{"role":"user","content":"a"},)"
              R"({"role":"assistant","content":"1"},{"role":"user","content":"b"},)"
              R"({"role":"assistant","content":"2"},{"role":"user","content":"c"}])");
    EXPECT_EQ(dialogue_of(all, "f").conversation().messages.dump(), all.messages.dump());
    EXPECT_EQ(dialogue_of({}, "f").turns.size(), 0u);
}

TEST(Dialogue, ReplacesWhatWasNeverAnswered) {
    Dialogue dialogue = three_turns();
    dialogue.ask("d");
    ASSERT_EQ(dialogue.turns.size(), 3u);
    EXPECT_EQ(dialogue.turns[2].message, "d");
    dialogue.turns[2].answer = "";
    dialogue.ask("e");
    EXPECT_EQ(dialogue.turns.size(), 4u);
}

TEST(Dialogue, RefusesOtherConversations) {
    const auto refused = [](const char* json) -> std::string {
        try {
            dialogue_of(read_conversation(json, "f.json"), "f.json");
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    };
    EXPECT_EQ(refused(R"([{"role":"user","content":"a"},{"role":"user","content":"b"}])"),
              "f.json: message 2 is not of the user and the assistant in turns");
    EXPECT_NE(refused(R"([{"role":"assistant","content":"a"}])"), "");
    EXPECT_NE(refused(R"([{"role":"user","content":"a"},{"role":"system","content":"b"}])"), "");
    EXPECT_NE(refused(R"([{"role":"tool","content":"a"}])"), "");
    EXPECT_EQ(refused(R"([{"role":"user","content":[]}])"),
              "f.json: message 1 has no text as its content");
    EXPECT_EQ(refused("[7]"), "f.json: message 1 has no text as its role");
    EXPECT_NE(refused(R"({"messages":[],"tools":[]})"), "");
}

TEST(Dialogue, DropsItsOldestTurns) {
    const auto count = [](const Dialogue& dialogue) { return 10 * int(dialogue.turns.size()); };
    Dialogue dialogue = three_turns();
    EXPECT_EQ(drop_oldest(dialogue, 30, count), 0);
    EXPECT_EQ(drop_oldest(dialogue, 29, count), 1);
    EXPECT_EQ(dialogue.turns.front().message, "b");
    EXPECT_EQ(dialogue.system, "s");
    EXPECT_EQ(drop_oldest(dialogue, 0, count), 1);
    ASSERT_EQ(dialogue.turns.size(), 1u);
    EXPECT_EQ(dialogue.turns[0].message, "c");
}

TEST(Shading, ColoursDraftedTextOnly) {
    Shading shading(true);
    EXPECT_EQ(shading.put("a", false), "a");
    EXPECT_EQ(shading.put("b", true), "\033[36mb");
    EXPECT_EQ(shading.put("", false), "") << "no change for nothing";
    EXPECT_EQ(shading.put("c", true), "c");
    EXPECT_EQ(shading.put("d", false), "\033[39md");
    EXPECT_EQ(shading.end(), "");
    shading.put("e", true);
    EXPECT_EQ(shading.end(), "\033[39m");
    Shading off(false);
    EXPECT_EQ(off.put("a", true) + off.put("b", false) + off.end(), "ab");
}

TEST(LineHistory, IsKeptForItsUserAlone) {
    const TestFolder folder;
    const auto file = folder.path() / "state" / "aerie" / "chat_history";
    LineHistory first(file), second(file);
    first.add("one");
    first.add("one");
    second.add("two");
    first.add("");
    EXPECT_EQ(LineHistory(file).lines(), (std::vector<std::string>{"one", "two"}));
    struct stat info = {};
    ASSERT_EQ(::stat(file.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    ::chmod(file.c_str(), 0644);
    first.add("three");
    ASSERT_EQ(::stat(file.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST(LineHistory, ForgetsOldLines) {
    const TestFolder folder;
    std::string lines;
    for (int i = 0; i < 1500; ++i) lines += std::to_string(i) + "\n";
    folder.write("history", lines);
    const LineHistory history(folder.path() / "history");
    ASSERT_EQ(history.lines().size(), 1000u);
    EXPECT_EQ(history.lines().front(), "500");
    EXPECT_EQ(read_text(folder.path() / "history", 1 << 20),
              lines.substr(lines.find("\n500\n") + 1));
}

TEST(LineHistory, CanDoWithoutAFile) {
    LineHistory history("");
    history.add("one");
    EXPECT_EQ(history.lines().size(), 1u);
    LineHistory nowhere("/dev/null/history");
    nowhere.add("one");
    EXPECT_EQ(nowhere.lines().size(), 1u);
}

}  // namespace
}  // namespace aerie
