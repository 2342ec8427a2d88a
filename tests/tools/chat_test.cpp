// `aerie chat` through a pipe: each line is a turn, and stdout has the answers alone.
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "io/damage.h"
#include "io/input_file.h"
#include "paths.h"
#include "tools/generated.h"

namespace aerie::test {
namespace {

using Lines = std::vector<std::string>;

const Lines kShort = {"-n", "24"};
const Lines kChatml = {"--template", (test_data_dir() / "jinja" / "chatml.jinja").string()};

Outcome chat(const Lines& input, const Lines& flags = kShort, Surroundings around = {}) {
    for (const std::string& line : input) around.input += line + "\n";
    return run(with({"chat"}, flags), around);
}

Json::Array messages_of(const Lines& contents) {
    Json::Array messages;
    for (size_t i = 0; i < contents.size(); ++i)
        messages.push_back(
            Json::Object{{"role", i % 2 ? "assistant" : "user"}, {"content", contents[i]}});
    return messages;
}

// The output of `aerie generate` for a conversation in which user and assistant take turns.
Json generated_from(const Lines& contents, const Lines& flags = kShort) {
    return generated(with({"--messages", "-"}, flags),
                     {.input = Json(messages_of(contents)).dump()});
}
std::string generated_answer(const Lines& contents, const Lines& flags = kShort) {
    return text_of(generated_from(contents, flags));
}

// The answers to these messages; each answer follows all messages and answers before it.
Lines generated_answers(const Lines& messages, const Lines& flags = kShort) {
    Lines contents, answers;
    for (const std::string& message : messages) {
        contents.push_back(message);
        answers.push_back(generated_answer(contents, flags));
        contents.push_back(answers.back());
    }
    return answers;
}

std::string lines(const Lines& all) {
    std::string text;
    for (const std::string& line : all) text += line + "\n";
    return text;
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

const Lines kMessages = {"What is 3 times 14?", "Who wrote the letter?", "Tell me more."};

TEST(Chat, DropsTheByteOrderMarkOfItsInput) {
    EXPECT_EQ(chat({"\xEF\xBB\xBFWhat is 3 times 14?"}).out, chat({"What is 3 times 14?"}).out);
}

TEST(Chat, AnswersAsGenerateDoes) {
    for (const Lines& how : {Lines{"--draft", "none"},
                             {"--draft", "eagle2"},
                             {"--draft", "lookup"},
                             {"--temp", "0.8", "--seed", "7", "--draft", "none"},
                             {"--temp", "0.8", "--seed", "7", "--draft", "eagle2"}}) {
        const Outcome outcome = chat(kMessages, with(kShort, how));
        EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
        EXPECT_EQ(outcome.out, lines(generated_answers(kMessages, with(kShort, how))))
            << lines(how);
    }
}

// The numbers in a line of --stats.
struct Figures {
    int tokens = 0, read = 0, prompt = 0;
    double first_token = 0;
};

std::vector<Figures> figures_of(const std::string& err) {
    std::vector<Figures> all;
    for (size_t at = 0; (at = err.find("first token after", at)) != std::string::npos; ++at) {
        const size_t begin = err.rfind('\n', at);
        Figures figures;
        std::sscanf(err.c_str() + (begin == std::string::npos ? 0 : begin + 1), "%d",
                    &figures.tokens);
        EXPECT_EQ(std::sscanf(err.c_str() + at, "first token after %lf s (read %d of %d)",
                              &figures.first_token, &figures.read, &figures.prompt),
                  3)
            << err;
        all.push_back(figures);
    }
    return all;
}

TEST(Chat, ReadsOnlyWhatIsNew) {
    std::string long_message = "Listen:";
    for (int i = 0; i < 60; ++i) long_message += " the ship sailed on,";
    for (const char* method : {"none", "eagle2"}) {
        const Outcome outcome =
            chat({long_message, "And then?"}, {"-n", "24", "--stats", "--draft", method});
        const std::vector<Figures> figures = figures_of(outcome.err);
        ASSERT_EQ(figures.size(), 2u) << outcome.err;
        EXPECT_EQ(figures[0].read, figures[0].prompt);
        EXPECT_GT(figures[0].prompt, 300);
        EXPECT_GT(figures[1].prompt, figures[0].prompt + figures[0].tokens);
        // The answer's last token was never run, so it is read, too.
        EXPECT_EQ(figures[1].read, figures[1].prompt - figures[0].prompt - figures[0].tokens + 1);
        EXPECT_LT(figures[1].read, 24);
        const std::string answer = outcome.out.substr(0, outcome.out.find('\n'));
        const Json anew =
            generated_from({long_message, answer, "And then?"}, {"-n", "1", "--draft", method});
        std::printf(
            "first token of the second turn (%s): %.4f s with %d of %d tokens read, "
            "%.4f s with all of them\n",
            method, figures[1].first_token, figures[1].read, figures[1].prompt,
            anew.find("stats")->find("prefill_seconds")->number());
    }
}

TEST(Chat, TakesMessagesOfSeveralLines) {
    const std::string answer = generated_answer({"one\ntwo"});
    EXPECT_EQ(chat({"one\\", "two"}).out, answer + "\n");
    EXPECT_EQ(chat({"\"\"\"", "one", "two", "\"\"\""}).out, answer + "\n");
    EXPECT_EQ(chat({"\"\"\"one", "two"}).out, answer + "\n") << "the input ends in the block";
    EXPECT_EQ(chat({"", "one\\", "two\r"}).out, answer + "\n") << "nothing, and a line of Windows";
    EXPECT_EQ(chat({"\"\"\"/exit\"\"\""}).out, generated_answer({"/exit"}) + "\n");
}

TEST(Chat, AnswersTheMessageOfTheCommandLineFirst) {
    const Lines answers = generated_answers(kMessages);
    const Outcome both = chat({kMessages[1]}, with(kShort, {kMessages[0]}));
    EXPECT_EQ(both.exit_code, 0) << both.err;
    EXPECT_EQ(both.out, lines({answers[0], answers[1]}));
    EXPECT_EQ(chat({kMessages[1]}, with(kShort, {"-p", kMessages[0]})).out, both.out);
    const Outcome one = chat({kMessages[1]}, with(kShort, {"-st", "-p", kMessages[0]}));
    EXPECT_EQ(one.exit_code, 0) << one.err;
    EXPECT_EQ(one.out, generated_answer({kMessages[1] + "\n\n" + kMessages[0]}) + "\n")
        << "stdin stands before the only message";
    const Outcome ran = run({"run", "aerie-tiny", kMessages[0], "-n", "24"});
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_EQ(ran.out, lines({answers[0]}));
    const Outcome joined = run({"run", "aerie-tiny", "-n", "24", "What", "is", "seven?"});
    EXPECT_EQ(joined.exit_code, 0) << joined.err;
    EXPECT_EQ(joined.out, generated_answer({"What is seven?"}) + "\n");
}

TEST(Chat, BeginsAnewAndIsSet) {
    const Lines answers = generated_answers(kMessages);
    const Outcome anew = chat({kMessages[0], "/new", kMessages[0], "/bye", kMessages[1]});
    EXPECT_EQ(anew.exit_code, 0) << anew.err;
    EXPECT_EQ(anew.out, lines({answers[0], answers[0]}));
    EXPECT_TRUE(has(anew.err, "(a new conversation)"));
    const Lines sampling = {"--temp", "0.8", "--seed", "7"};
    const Outcome set = chat({"/set temp 0.8", "/set seed 7", kMessages[0]});
    EXPECT_EQ(set.exit_code, 0) << set.err;
    EXPECT_EQ(set.out, lines({generated_answer({kMessages[0]}, with(kShort, sampling))}));
    EXPECT_TRUE(has(set.err, "(temp 0.8, top-k ")) << set.err;
    EXPECT_EQ(chat({"/set heat 9"}).exit_code, 1);
    EXPECT_EQ(chat({"/set top-k -1"}).exit_code, 0);
    for (const char* wrong : {"/set top-k -2", "/set predict 99999999999", "/set temp 101"})
        EXPECT_EQ(chat({wrong}).exit_code, 1) << wrong;
}

TEST(Chat, PutsAFileBeforeTheNextMessage) {
    const TestFolder folder;
    folder.write("poem.txt", "Roses are red.");
    const Outcome outcome =
        chat({"/file poem.txt", "Go on.", kMessages[1]}, kShort, {.folder = folder.path()});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.out,
              lines(generated_answers({"poem.txt:\nRoses are red.\n\nGo on.", kMessages[1]})));
    EXPECT_EQ(chat({"/file absent.txt"}).exit_code, 1);
}

TEST(Chat, UndoesAndRetries) {
    const Lines answers = generated_answers(kMessages);
    const Outcome undone = chat({kMessages[0], "Nonsense", "/undo", kMessages[1]});
    EXPECT_EQ(undone.out,
              lines({answers[0], generated_answers({kMessages[0], "Nonsense"})[1], answers[1]}));
    EXPECT_TRUE(has(undone.err, "removed: 'Nonsense'")) << undone.err;

    const Outcome again = chat({kMessages[0], "/retry", kMessages[1]});
    EXPECT_EQ(again.out, lines({answers[0], answers[0], answers[1]}));
    EXPECT_TRUE(has(again.err, "the same text again")) << again.err;

    const Lines sampled = {"-n", "24", "--temp", "1"};
    const Outcome other = chat({kMessages[0], "/retry"}, with(sampled, {"-s", "7"}));
    EXPECT_EQ(other.out, lines({generated_answer({kMessages[0]}, with(sampled, {"-s", "7"})),
                                generated_answer({kMessages[0]}, with(sampled, {"-s", "8"}))}));
    EXPECT_TRUE(has(other.err, "with seed 8")) << other.err;
    EXPECT_EQ(other.exit_code, 0);
}

TEST(Chat, StoresAndTakesUpConversations) {
    const TestFolder folder;
    const Surroundings here{.folder = folder.path()};
    const Lines answers = generated_answers(kMessages);
    EXPECT_EQ(chat({kMessages[0], "/save talk"}, kShort, here).exit_code, 0);
    EXPECT_EQ(read_text(folder.path() / "talk.json", 1 << 16),
              Json(messages_of({kMessages[0], answers[0]})).dump() + "\n");
    const Outcome loaded =
        chat({"Something else", "/load talk", "/stats on", kMessages[1]}, kShort, here);
    EXPECT_EQ(loaded.out, lines({generated_answer({"Something else"}), answers[1]}));
    const std::vector<Figures> figures = figures_of(loaded.err);
    ASSERT_EQ(figures.size(), 1u) << loaded.err;
    EXPECT_LT(figures[0].read, figures[0].prompt / 2) << "the session was stored too";
    EXPECT_EQ(
        text_of(generated(with({"--messages", "talk.json", "-p", kMessages[1]}, kShort), here)),
        answers[1]);

    std::filesystem::copy_file(folder.path() / "talk.json", folder.path() / "other.json");
    const Outcome bare = chat({"/load other", kMessages[1]}, kShort, here);
    EXPECT_EQ(bare.out, answers[1] + "\n") << "messages do without what was computed";
    EXPECT_TRUE(has(bare.err, "no computed state in other: its text is read anew")) << bare.err;
    folder.write("other", "no session");
    const Outcome damaged = chat({kMessages[0], "/load other", kMessages[1]}, kShort, here);
    EXPECT_EQ(damaged.out, lines({answers[0], answers[1]})) << "the conversation is as it was";
    EXPECT_EQ(damaged.exit_code, 1);
    EXPECT_TRUE(damaged.err.starts_with("aerie: other: ")) << damaged.err;
    EXPECT_EQ(std::count(damaged.err.begin(), damaged.err.end(), '\n'), 1) << damaged.err;

    folder.write("odd.json", R"([{"role":"tool","content":"x"}])");
    const Outcome odd =
        chat({kMessages[0], "/load odd", "/load nowhere", kMessages[1]}, kShort, here);
    EXPECT_EQ(odd.out, lines({answers[0], answers[1]})) << "the conversation is as it was";
    EXPECT_EQ(odd.exit_code, 1);
    EXPECT_EQ(odd.err,
              "aerie: odd.json: message 1 is not of the user and the assistant in turns\n"
              "aerie: /load nowhere: there is no nowhere.json; /save FILE stores a conversation\n");
    EXPECT_EQ(chat({kMessages[0], "/save no/such/folder/x"}, kShort, here).exit_code, 1);
}

TEST(Chat, StoresOverNoOtherFile) {
    const TestFolder folder;
    const Surroundings here{.folder = folder.path()};
    folder.write("thesis", "mine");
    folder.write("settings.json", "{}");
    const Outcome refused = chat({kMessages[0], "/save thesis", "/save settings"}, kShort, here);
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_TRUE(has(refused.err, "/save: thesis exists already")) << refused.err;
    EXPECT_TRUE(has(refused.err, "/save: settings.json exists already")) << refused.err;
    EXPECT_EQ(read_text(folder.path() / "thesis", 99), "mine");
    EXPECT_EQ(read_text(folder.path() / "settings.json", 99), "{}");
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "thesis.json"));
    const Outcome twice =
        chat({kMessages[0], "/save talk", kMessages[1], "/save talk"}, kShort, here);
    EXPECT_EQ(twice.exit_code, 0) << twice.err;

    const Outcome empty = chat({"/save talk"}, kShort, here);
    EXPECT_TRUE(has(empty.err, "/save: there is no message yet")) << empty.err;
    EXPECT_EQ(chat({"/load talk"}, kShort, here).exit_code, 0) << "it is as it was";
    folder.write("talk.json", "mine");
    const Outcome beside = chat({kMessages[0], "/save talk"}, kShort, here);
    EXPECT_TRUE(has(beside.err, "/save: talk.json exists already")) << beside.err;
    EXPECT_EQ(read_text(folder.path() / "talk.json", 99), "mine");
}

TEST(Chat, WaitsForNoPipe) {
    const TestFolder folder;
    const Surroundings here{.folder = folder.path()};
    ASSERT_EQ(::mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
    ASSERT_EQ(::mkfifo((folder.path() / "other.json").c_str(), 0600), 0);
    const Outcome refused =
        chat({kMessages[0], "/save pipe", "/save other", "/load other"}, kShort, here);
    EXPECT_TRUE(has(refused.err, "/save: pipe exists already")) << refused.err;
    EXPECT_TRUE(has(refused.err, "/save: other.json exists already")) << refused.err;
    EXPECT_TRUE(has(refused.err, "/load other.json: not a regular file")) << refused.err;
}

// The space in front of a word that goes on from the text is the word's.
TEST(Chat, AnAnswerThatGoesOnKeepsItsSpace) {
    const Lines begun = {kMessages[0], "I will"};
    const std::string text = generated_answer(begun);
    EXPECT_TRUE(text.starts_with(' ')) << text;
}

TEST(Chat, SwitchesDraftingWithoutChangingTheText) {
    const Outcome outcome =
        chat({kMessages[0], "/draft off", "/stats", kMessages[1], "/draft on", kMessages[2]},
             {"-n", "24", "--draft", "eagle2", "--tree", "20,5,8"});
    EXPECT_EQ(outcome.out, lines(generated_answers(kMessages)));
    const size_t off = outcome.err.find("drafting off"), on = outcome.err.find("drafting on");
    ASSERT_TRUE(off != std::string::npos && on != std::string::npos) << outcome.err;
    EXPECT_TRUE(has(outcome.err.substr(off, on - off), "tau 1.00"));
    EXPECT_FALSE(has(outcome.err.substr(on), "tau 1.00"));
    const Outcome none = chat({"/draft on"}, {"--draft", "none"});
    EXPECT_EQ(none.exit_code, 1);
    EXPECT_TRUE(has(none.err, "nothing that drafts")) << none.err;
}

TEST(Chat, TellsTheModelSomethingFirst) {
    const Outcome refused = chat({"/system Be brief.", kMessages[0]});
    EXPECT_EQ(refused.out, lines({generated_answer({kMessages[0]})}));
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
    EXPECT_TRUE(has(refused.err, "its chat template leaves it out")) << refused.err;

    const Lines asked = with(with({"--chat", "-p", kMessages[0]}, kShort), kChatml),
                briefed = with(asked, {"--system", "Hear."}), flags = with(kShort, kChatml);
    const std::string answer = text_of(generated(briefed));
    const Outcome outcome = chat({"/system Hear.", kMessages[0], "/system", "/retry"}, flags);
    EXPECT_EQ(outcome.out, lines({answer, text_of(generated(asked))}));
    EXPECT_EQ(chat({kMessages[0]}, with(flags, {"--system", "Hear."})).out, answer + "\n");
}

// The answer is a thought from its beginning on, which never ends.
TEST(Chat, HidesThoughts) {
    const TestFolder folder;
    folder.write("thinks.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}<think>\n");
    const Surroundings here{.folder = folder.path()};
    const Lines flags = with(kShort, {"--template", "thinks.jinja"});
    const std::string shown = chat({kMessages[0]}, flags, here).out;
    EXPECT_GT(shown.size(), 10u);
    const Lines hiding = with(flags, {"--hide-thinking"});
    EXPECT_EQ(chat({kMessages[0]}, hiding, here).out, "\n");
    EXPECT_EQ(chat({"/think on", kMessages[0]}, hiding, here).out, shown);
    EXPECT_EQ(chat({"/think off", kMessages[0]}, flags, here).out, "\n");
}

TEST(Chat, RefusesATemplateThatDoesNotDo) {
    const TestFolder folder;
    folder.write("refuses.jinja",
                 "{% for m in messages %}{% if m.role == 'system' %}"
                 "{{ raise_exception('No system message.') }}{% endif %}{{ m.content }}"
                 "{% endfor %}");
    folder.write("broken.jinja", "{% for");
    const Surroundings here{.folder = folder.path()};
    const Outcome system =
        chat({"/system Hi", "x"}, with(kShort, {"--template", "refuses.jinja"}), here);
    EXPECT_EQ(system.err, "aerie: this model takes no system message: No system message.\n");
    EXPECT_NE(system.out, "");
    EXPECT_EQ(chat({"x"}, {"--template", "refuses.jinja", "--system", "Hi"}, here).exit_code, 2);
    for (const Lines& flags : {Lines{"--template", "refuses.jinja"}, Lines{}}) {
        const Outcome dropped = run(with({"generate", "-p", "x", "--system", "Hi"}, flags), here);
        EXPECT_EQ(dropped.exit_code, 2);
        EXPECT_EQ(dropped.out, "");
        EXPECT_TRUE(has(dropped.err, "this model takes no system message: ")) << dropped.err;
    }
    const Outcome broken = chat({"x"}, {"--template", "broken.jinja"}, here);
    EXPECT_EQ(broken.exit_code, 1);
    EXPECT_EQ(std::count(broken.err.begin(), broken.err.end(), '\n'), 1) << broken.err;

    const std::filesystem::path model = folder.path() / "model";
    std::filesystem::create_directories(model);
    for (const auto& file : std::filesystem::directory_iterator(models_dir() / "aerie-tiny"))
        if (file.path().filename() != "tokenizer_config.json")
            std::filesystem::copy_file(file.path(), model / file.path().filename());
    const Outcome none = chat({"x"}, {"-m", "model"}, here);
    EXPECT_EQ(none.exit_code, 1);
    EXPECT_EQ(none.out, "");
    EXPECT_TRUE(has(none.err, "no chat template; give one with --template FILE")) << none.err;
}

TEST(Chat, DropsItsOldestTurnsWhereTheContextIsFull) {
    const Lines flags = {"-c", "128", "-n", "20", "--draft", "eagle2"};
    const Lines messages = {"One is here.", "Two is here.", "Three is here.", "Four is here.",
                            "Five is here."};
    const Outcome outcome = chat(with({"/stats on"}, messages), flags);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "(the context of 128 tokens is full: the oldest ")) << outcome.err;
    const std::vector<Figures> figures = figures_of(outcome.err);
    ASSERT_EQ(figures.size(), messages.size()) << outcome.err;
    for (const Figures& turn : figures) {
        EXPECT_LE(turn.prompt + turn.tokens, 128);
        EXPECT_EQ(turn.tokens, 20) << "there was room for all of it";
    }
    const Outcome whole =
        chat({"Say all that there is to say of the sea, of ships and of those who sail in them."},
             with(kChatml, {"-c", "40"}));
    EXPECT_EQ(whole.exit_code, 1);
    EXPECT_TRUE(has(whole.err, "is too long")) << whole.err;
}

// The file goes with the message that was refused; no turn was dropped for it.
TEST(Chat, DropsAFileThatIsTooLongWithItsMessage) {
    const TestFolder folder;
    std::string text;
    for (int i = 0; i < 200; ++i) text += "word " + std::to_string(i) + " ";
    folder.write("long.txt", text);
    const Outcome outcome = chat({kMessages[0], "/file long.txt", "Sum it up.", kMessages[1]},
                                 with(kShort, {"-c", "256"}), {.folder = folder.path()});
    EXPECT_EQ(outcome.out, lines(generated_answers({kMessages[0], kMessages[1]}))) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "aerie: the message is too long: ")) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "; /file is dropped, too")) << outcome.err;
    EXPECT_FALSE(has(outcome.err, "the oldest")) << outcome.err;
}

TEST(Chat, EndsAnAnswerWithTheContext) {
    const Outcome outcome = chat({"Once upon a time", "And then?"}, {"-c", "64"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "(ended: the context of 64 tokens is full)")) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "the oldest turn is dropped")) << outcome.err;
}

TEST(Chat, EndsByASignalThroughAPipe) {
    Surroundings around;
    for (int i = 0; i < 1000; ++i) around.input += "Tell me more.\n/undo\n";
    Program program({"chat", "--draft", "none"}, around);
    for (int i = 0; i < 6000 && program.out().empty(); ++i) ::usleep(10'000);
    program.send(SIGINT);
    EXPECT_EQ(program.wait().exit_code, 130);
}

TEST(Chat, PutsOutAnswersAlone) {
    const Outcome outcome = chat({"/help", "/shade off", "/stats off", kMessages[0], "/exit", "x"});
    EXPECT_EQ(outcome.out, lines({generated_answer({kMessages[0]})}));
    EXPECT_TRUE(has(outcome.err, "/retry")) << outcome.err;
    EXPECT_FALSE(has(outcome.err, "\x1b"));
    EXPECT_FALSE(has(outcome.err, "> "));
    EXPECT_EQ(chat({}).out, "");
    const Outcome unknown = chat({"/nothing", "/shade on", kMessages[0]});
    EXPECT_EQ(unknown.exit_code, 1);
    EXPECT_EQ(unknown.out, lines({generated_answer({kMessages[0]})}));
    EXPECT_EQ(std::count(unknown.err.begin(), unknown.err.end(), '\n'), 2) << unknown.err;
}

}  // namespace
}  // namespace aerie::test
