// The parts of `aerie chat` that need neither a model nor a terminal.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "answer_settings.h"
#include "chat_line.h"
#include "core/error.h"
#include "dialogue.h"
#include "io/damage.h"
#include "io/input_file.h"
#include "line_history.h"
#include "shading.h"
#include "thoughts.h"
#include "word_wrap.h"

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
    for (const auto& [name, kind] : {std::pair("/draft", Kind::draft),
                                     {"/shade", Kind::shade},
                                     {"/think", Kind::think},
                                     {"/stats", Kind::stats}}) {
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

TEST(ChatLine, KnowsWhatOtherProgramsCallIt) {
    for (const char* name : {"/new", "/clear"})
        EXPECT_EQ(read_chat_line({.text = name}).kind, Kind::begin_anew) << name;
    for (const char* name : {"/exit", "/bye", "/quit", "/q"})
        EXPECT_EQ(read_chat_line({.text = name}).kind, Kind::exit) << name;
    for (const char* line : {"/file a b.txt", "/read a b.txt"}) {
        EXPECT_EQ(read_chat_line({.text = line}).kind, Kind::add_file) << line;
        EXPECT_EQ(read_chat_line({.text = line}).text, "a b.txt") << line;
    }
    EXPECT_EQ(read_chat_line({.text = "/set temp 0.8"}).text, "temp 0.8");
}

TEST(ChatLine, FindsFilesInTheUsersHome) {
    const std::string home = std::getenv("HOME") ? std::getenv("HOME") : "";
    if (home.empty()) GTEST_SKIP() << "SKIPPED: HOME is not set";
    EXPECT_EQ(read_chat_line({.text = "/save ~/talk"}).text, home + "/talk");
    EXPECT_EQ(read_chat_line({.text = "/save ~"}).text, home);
    EXPECT_EQ(read_chat_line({.text = "/save a~/talk"}).text, "a~/talk");
    EXPECT_EQ(read_chat_line({.text = "/save ~other/talk"}).text, "~other/talk");
}

TEST(ChatLine, APastedProgramIsNoCommand) {
    const std::string program = "/* sums */\nint sum(int a, int b);";
    EXPECT_EQ(read_chat_line({.text = program}).kind, Kind::message);
    EXPECT_EQ(read_chat_line({.text = program}).text, program);
    EXPECT_NE(refusal("/* sums */"), "");
}

TEST(ChatLine, IsCompletedAsFarAsThereIsNoChoice) {
    EXPECT_EQ(completed_chat_line("/he"), "lp");
    EXPECT_EQ(completed_chat_line("/sa"), "ve ");
    EXPECT_EQ(completed_chat_line("/s"), "") << "save, set, shade, stats, system";
    EXPECT_EQ(completed_chat_line("/nothing"), "");
    EXPECT_EQ(completed_chat_line("he"), "") << "a message";
    const TestFolder folder;
    folder.write("talk-a.txt", "a");
    folder.write("talk-b.txt", "b");
    std::filesystem::create_directory(folder.path() / "notes");
    const std::string at = "/file " + folder.path().string() + "/";
    EXPECT_EQ(completed_chat_line(at + "t"), "alk-");
    EXPECT_EQ(completed_chat_line(at + "talk-b"), ".txt");
    EXPECT_EQ(completed_chat_line(at + "n"), "otes/");
    EXPECT_EQ(completed_chat_line("/file /no/such/folder/x"), "");
    EXPECT_EQ(completed_chat_line("/draft o"), "") << "no file";
}

TEST(AnswerSettings, AreSetByName) {
    AnswerSettings settings;
    set_by_name(settings, "temp 0.8");
    set_by_name(settings, "top-k=40");
    set_by_name(settings, "top-p  0.9");
    set_by_name(settings, "seed 18446744073709551615");
    set_by_name(settings, "predict 64");
    EXPECT_EQ(shown(settings),
              "temp 0.8, top-k 40, top-p 0.9, min-p 0, repeat-penalty 1, seed "
              "18446744073709551615, predict 64");
    set_by_name(settings, "parameter temperature 0.5");
    set_by_name(settings, "repeat_penalty 1.1");
    set_by_name(settings, "seed -1");
    EXPECT_EQ(shown(settings).find("temp 0.5, top-k 40, top-p 0.9, min-p 0, repeat-penalty 1.1"),
              0u)
        << "as Ollama spells them: " << shown(settings);
    EXPECT_EQ(shown(settings).find("18446744073709551615"), std::string::npos) << "a random seed";
    const std::string before = shown(settings);
    for (const char* wrong : {"temp", "temp hot", "temp -1", "temp nan", "top-k 1.5", "top-p 2",
                              "seed -2", "predict -2", "heat 1", "temp 0.8 0.9", ""})
        EXPECT_THROW(set_by_name(settings, wrong), UsageError) << wrong;
    EXPECT_EQ(shown(settings), before);
}

// The text in these pieces, broken to `width` columns.
std::string broken(const std::vector<std::string>& pieces, int width) {
    WordWrap wrap;
    std::string text;
    for (const std::string& piece : pieces)
        for (const auto& shown : wrap.put(piece, {}, width)) text += shown.text;
    for (const auto& shown : wrap.end()) text += shown.text;
    return text;
}

TEST(WordWrap, BreaksBetweenWords) {
    EXPECT_EQ(broken({"the quick brown fox"}, 10), "the quick \nbrown fox");
    EXPECT_EQ(broken({"the qu", "ick bro", "wn fo", "x"}, 10), "the quick \nbrown fox");
    EXPECT_EQ(broken({"0123456789 a"}, 10), "0123456789\na") << "no space begins a line";
    EXPECT_EQ(broken({"one\n\ntwo three"}, 8), "one\n\ntwo \nthree");
    EXPECT_EQ(broken({"a gigantically long word"}, 8), "a gigantically \nlong \nword")
        << "the terminal breaks what has no room in any line";
    EXPECT_EQ(broken({"\xE4\xB8\xAD\xE6\x96\x87 \xE5\xAD\x97"}, 6),
              "\xE4\xB8\xAD\xE6\x96\x87 \n\xE5\xAD\x97")
        << "two columns each";
    EXPECT_EQ(broken({"no term", "inal"}, 0), "no terminal");
}

TEST(WordWrap, KeepsWhatWasDraftedAndHoldsOneWordBack) {
    WordWrap wrap;
    EXPECT_TRUE(wrap.put("half", {.is_drafted = true}, 20).empty());
    const auto shown = wrap.put(" way", {}, 20);
    ASSERT_EQ(shown.size(), 2u);
    EXPECT_EQ(shown[0].text, "half");
    EXPECT_TRUE(shown[0].marks.is_drafted);
    EXPECT_EQ(shown[1].text, " ");
    EXPECT_FALSE(shown[1].marks.is_drafted);
    ASSERT_EQ(wrap.end().size(), 1u);
    EXPECT_EQ(wrap.put("now", {}, 0).size(), 1u) << "nothing is held back without a terminal";
}

TEST(ChatLine, HelpNamesAllCommands) {
    for (const char* name : {"/new", "/file", "/set", "/system", "/retry", "/undo", "/save",
                             "/load", "/draft", "/shade", "/think", "/stats", "/help", "/exit"})
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
    EXPECT_EQ(refused("[7]"), "f.json: message 1 has no 'role'");
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

TEST(Shading, ColoursDraftedTextAndDimsThoughts) {
    constexpr Marks kDrafted{.is_drafted = true}, kThought{.is_thought = true};
    Shading shading(true, true);
    EXPECT_EQ(shading.put("a", {}), "a");
    EXPECT_EQ(shading.put("b", kDrafted), "\033[36mb");
    EXPECT_EQ(shading.put("", {}), "") << "no change for nothing";
    EXPECT_EQ(shading.put("c", kDrafted), "c");
    EXPECT_EQ(shading.put("d", {}), "\033[39md");
    EXPECT_EQ(shading.end(), "");
    shading.put("e", kDrafted);
    EXPECT_EQ(shading.put("f", {.is_drafted = true, .is_thought = true}), "\033[2mf");
    EXPECT_EQ(shading.put("g", kThought), "\033[39mg");
    EXPECT_EQ(shading.end(), "\033[22m");
    Shading off(false, false);
    EXPECT_EQ(off.put("a", kDrafted) + off.put("b", kThought) + off.end(), "ab");
    EXPECT_EQ(Shading(false, true).put("h", kDrafted), "h");
    EXPECT_EQ(Shading(true, false).put("i", kThought), "i");
}

// The text of these pieces as it is shown, thoughts in brackets.
std::string thoughts_of(const std::string& prompt, const std::vector<std::string>& pieces) {
    Thoughts thoughts(prompt);
    std::string text;
    const auto add = [&](const std::vector<Thoughts::Part>& parts) {
        for (const auto& [part, is_thought] : parts) text += is_thought ? "[" + part + "]" : part;
    };
    for (const std::string& piece : pieces) add(thoughts.put(piece));
    add(thoughts.end());
    return text;
}

TEST(Thoughts, AreFoundHoweverTheTextIsCut) {
    EXPECT_EQ(thoughts_of("", {"No thought < 3."}), "No thought < 3.");
    EXPECT_EQ(thoughts_of("", {"<think>x</think>y"}), "[<think>x</think>]y");
    EXPECT_EQ(thoughts_of("", {"a<th", "ink", ">", "x<", "/think", ">y"}),
              "a[<think>][x][</think>]y");
    EXPECT_EQ(thoughts_of("", {"<thi", "s is no tag"}), "<this is no tag");
    EXPECT_EQ(thoughts_of("", {"ends in <thin"}), "ends in <thin");
    EXPECT_EQ(thoughts_of("", {"<think>", "never ends </"}), "[<think>][never ends ][</]");
    EXPECT_EQ(thoughts_of("<think>\n", {"x</think>y"}), "[x</think>]y") << "by the template";
    EXPECT_EQ(thoughts_of("<think>\n</think>\n", {"y"}), "y");
    EXPECT_EQ(thoughts_of("", {"<<think>x"}), "<[<think>x]");
}

TEST(Thoughts, CanBeFolded) {
    FoldedThoughts folded;
    const auto shown = [&](const std::vector<Thoughts::Part>& parts) {
        std::string text;
        for (const auto& [part, is_thought] : folded.without(parts)) text += part;
        return text;
    };
    EXPECT_EQ(shown({{" a ", false}}), " a ");
    EXPECT_FALSE(folded.is_thinking());
    EXPECT_EQ(shown({{"b", false}, {"<think>c", true}}), "b");
    EXPECT_TRUE(folded.is_thinking());
    EXPECT_EQ(shown({{"d</think>", true}, {"\n", false}}), "");
    EXPECT_FALSE(folded.is_thinking());
    EXPECT_EQ(shown({{"\n e\n", false}}), "e\n");
    EXPECT_EQ(shown({{"\nf", false}}), "\nf");
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
