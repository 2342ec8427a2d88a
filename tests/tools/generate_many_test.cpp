// `aerie generate --prompts`: the answers equal those of one prompt at a time, and the file of
// answers survives interruptions, other settings and files that are none.
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <csignal>
#include <set>
#include <thread>

#include "io/damage.h"
#include "io/input_file.h"
#include "tools/generated.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;

const char kPrompts[] =
    R"({"prompt": "Say hello."})"
    "\n"
    R"({"id": "sum", "kind": "math", "prompt": "What is 3 times 14?"})"
    "\n"
    R"({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]})"
    "\n"
    R"({"turns": ["Name a fruit.", "Another one."]})"
    "\n"
    R"({"text": "Once upon a time"})"
    "\n";

class GenerateMany : public testing::Test {
  protected:
    GenerateMany() { folder_.write("q.jsonl", kPrompts); }

    Outcome ask(const std::vector<std::string>& more = {}) {
        return run(with({"generate", "--prompts", "q.jsonl", "-q"}, with(more, {"-n", tokens_})),
                   here_);
    }
    std::string read(const std::string& file) {
        return read_text(folder_.path() / file, size_t(1) << 24);
    }
    static std::vector<Json> lines(const std::string& text) {
        std::vector<Json> lines;
        for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos;
             begin = end + 1)
            lines.push_back(Json::parse(text.substr(begin, end - begin), "answers"));
        return lines;
    }
    // The text of an answer of a line.
    static std::string answer(const Json& line, size_t turn = 0) {
        const Json::Array& answers = *line.find("answers")->array();
        return turn < answers.size() ? text_of(answers[turn]) : "(no answer)";
    }
    void expect_refused(const Outcome& outcome, const std::string& why) {
        EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
        EXPECT_NE(outcome.err.find(why), std::string::npos) << outcome.err;
        EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    }

    std::string tokens_ = "12";
    TestFolder folder_;
    Surroundings here_{.folder = folder_.path()};
};

TEST_F(GenerateMany, AnswersAsOneAtATime) {
    const Outcome outcome = ask({"--temp", "1", "--seed", "7"});
    EXPECT_EQ(outcome.exit_code, 1) << "a prompt that asks nothing";
    EXPECT_NE(outcome.err.find("q.jsonl: line 3: nothing is asked"), std::string::npos);
    const std::vector<Json> answers = lines(outcome.out);
    ASSERT_EQ(answers.size(), 5u);
    const auto alone = [&](const std::string& seed, const std::vector<std::string>& flags) {
        return text_of(generated(with({"-n", "12", "--temp", "1", "--seed", seed}, flags)));
    };
    EXPECT_EQ(answer(answers[0]), alone("7", {"--chat", "-p", "Say hello."}));
    EXPECT_EQ(answer(answers[1]), alone("8", {"--chat", "-p", "What is 3 times 14?"}));
    EXPECT_EQ(answer(answers[4]), alone("11", {"-p", "Once upon a time"}));
    EXPECT_EQ(field(answers[1], "seed"), "8");
    EXPECT_EQ(field(answers[1], "kind"), "\"math\"");
    EXPECT_EQ(field(answers[1], "id"), "\"sum\"");
    EXPECT_EQ(field(answers[3], "id"), "4") << "the line's number";
    EXPECT_NE(field(answers[2], "error"), "");
    EXPECT_EQ(answers[3].find("answers")->array()->size(), 2u);

    std::string conversation = R"([{"role":"user","content":"Name a fruit."},)";
    conversation += R"({"role":"assistant","content":)" + Json(answer(answers[3])).dump() + "},";
    conversation += R"({"role":"user","content":"Another one."}])";
    const std::string file = folder_.write("second.json", conversation);
    EXPECT_EQ(answer(answers[3], 1), alone("10", {"--messages", file}));
}

TEST_F(GenerateMany, GoesOnAfterAnInterruption) {
    ask({"-o", "whole.jsonl", "--temp", "1", "--seed", "7"});
    const std::string whole = read("whole.jsonl");
    ASSERT_EQ(lines(whole).size(), 5u);
    const size_t second = whole.find('\n') + 1;
    for (size_t cut : {size_t(0), size_t(1), second - 1, second, second + 40}) {
        folder_.write("cut.jsonl", whole.substr(0, cut));
        // The seed is that of the lines that are there.
        ask(with({"-o", "cut.jsonl", "--temp", "1"}, cut < second
                                                         ? std::vector<std::string>{"--seed", "7"}
                                                         : std::vector<std::string>{}));
        const std::vector<Json> now = lines(read("cut.jsonl")), then = lines(whole);
        ASSERT_EQ(now.size(), then.size()) << cut;
        for (size_t i = 0; i < now.size(); ++i) {
            EXPECT_EQ(field(now[i], "id"), field(then[i], "id"));
            if (now[i].find("answers")->array()->empty()) continue;
            EXPECT_EQ(answer(now[i]), answer(then[i])) << cut << " " << i;
        }
    }
}

TEST_F(GenerateMany, AsksAgainWhatFailed) {
    std::string long_text;
    for (int i = 0; i < 60; ++i) long_text += "Tom has an apple. ";
    folder_.write("q.jsonl", "{\"prompt\": \"" + long_text + "\"}\n{\"prompt\": \"Hi\"}\n");
    const auto ask_within = [&](const std::string& context) {
        return ask({"-o", "a.jsonl", "--temp", "0", "-c", context}).exit_code;
    };
    EXPECT_EQ(ask_within("128"), 1);
    const std::string first = read("a.jsonl");
    ASSERT_EQ(lines(first).size(), 2u);
    EXPECT_NE(field(lines(first)[0], "error"), "");
    EXPECT_EQ(ask_within("128"), 1);
    EXPECT_EQ(read("a.jsonl"), first) << "the same error stands there once";
    EXPECT_EQ(ask_within("512"), 0);
    const std::vector<Json> answered = lines(read("a.jsonl"));
    ASSERT_EQ(answered.size(), 2u);
    EXPECT_EQ(field(answered[0], "id"), "1") << "in the order of the prompts";
    EXPECT_EQ(field(answered[0], "error"), "");
    EXPECT_EQ(ask_within("512"), 0);
    EXPECT_EQ(lines(read("a.jsonl")).size(), 2u) << "all is answered";
}

// An error binds nothing: what caused it may be mended.
TEST_F(GenerateMany, LetsThePromptThatFailedBeMended) {
    const std::string good = "{\"prompt\": \"Hi\"}\n";
    folder_.write("q.jsonl",
                  good + "{\"messages\": [{\"role\": \"system\", \"content\": \"x\"}]}\n");
    EXPECT_EQ(ask({"-o", "a.jsonl", "--temp", "0"}).exit_code, 1);
    folder_.write("q.jsonl", good + "{\"prompt\": \"Hello\"}\n");
    EXPECT_EQ(ask({"-o", "a.jsonl", "--temp", "0"}).exit_code, 0);
    ASSERT_EQ(lines(read("a.jsonl")).size(), 2u);

    folder_.write("refuses.jinja", "{{ raise_exception('no') }}");
    folder_.write("takes.jinja", "{{ messages[0].content }}");
    EXPECT_EQ(ask({"-o", "b.jsonl", "--temp", "0", "--template", "refuses.jinja"}).exit_code, 1);
    EXPECT_EQ(ask({"-o", "b.jsonl", "--temp", "0", "--template", "takes.jinja"}).exit_code, 0);
    EXPECT_EQ(lines(read("b.jsonl")).size(), 2u);
}

// Answers behind a long one are in the file before that one has ended.
TEST_F(GenerateMany, KeepsWhatHasEndedWhenItIsStopped) {
    std::string many = "{\"text\": \"Once upon a time\"}\n";
    for (int i = 0; i < 8; ++i)
        many += "{\"messages\": [{\"role\": \"system\", \"content\": \"" + std::to_string(i) +
                "\"}]}\n";
    folder_.write("q.jsonl", many);
    tokens_ = "1900";
    const fs::path file = folder_.path() / "a.jsonl";
    {
        Program long_one({"generate", "--prompts", "q.jsonl", "-o", "a.jsonl", "-n", "1900",
                          "--ignore-eos", "--temp", "0", "-c", "2000", "--parallel", "2"},
                         here_);
        for (int i = 0; i < 4000 && (!fs::exists(file) || lines(read("a.jsonl")).size() < 8); ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        long_one.send(SIGINT);
        const Outcome stopped = long_one.wait();
        EXPECT_EQ(stopped.exit_code, 128 + SIGINT);
        EXPECT_NE(stopped.err.find("the same command goes on"), std::string::npos) << stopped.err;
    }
    EXPECT_EQ(lines(read("a.jsonl")).size(), 8u);
    ask({"-o", "a.jsonl", "--ignore-eos", "--temp", "0", "-c", "2000"});
    const std::vector<Json> whole = lines(read("a.jsonl"));
    ASSERT_EQ(whole.size(), 9u);
    for (size_t i = 0; i < whole.size(); ++i)
        EXPECT_EQ(field(whole[i], "id"), std::to_string(i + 1));
}

TEST_F(GenerateMany, ContinuesATextAsItStands) {
    const std::string text = "The capital of France is";
    folder_.write("q.jsonl", Json(Json::Object{{"text", "<s>" + text}}).dump() + "\n");
    folder_.write("q.txt", text);
    const auto said = [&](const std::string& file) {
        const Outcome outcome =
            run({"generate", "--prompts", file, "-q", "-n", "8", "--temp", "0"}, here_);
        const std::vector<Json> all = lines(outcome.out);
        return all.empty() ? outcome.err : answer(all[0]);
    };
    EXPECT_EQ(said("q.jsonl"), text_of(generated({"-p", "<s>" + text, "-n", "8", "--temp", "0"})));
    EXPECT_EQ(said("q.txt"), text_of(generated({"-p", text, "-n", "8", "--temp", "0"})));
}

TEST_F(GenerateMany, KeepsAnswersOfOtherSettingsApart) {
    ask({"-o", "a.jsonl", "--temp", "0"});
    const std::string before = read("a.jsonl");
    const auto refused = [&](const std::vector<std::string>& flags, const std::string& why) {
        expect_refused(ask(with({"-o", "a.jsonl"}, flags)), why);
        EXPECT_EQ(read("a.jsonl"), before);
    };
    refused({"--temp", "0.5"}, "temperature 0.0, and this run has 0.5");
    refused({"--temp", "0", "--stop", "x"}, "stop [], and this run has [\"x\"]");
    refused({"--temp", "0", "--system", "Be brief."}, "system");
    refused({"--temp", "0", "--weights", "q8_0"}, "arithmetic");
    refused({"--temp", "0", "-m", "smollm2"}, "weights");
    refused({"--temp", "0", "--kv", "f32"}, "cache f32");
    EXPECT_EQ(ask({"-o", "a.jsonl", "--temp", "0", "--seed", "3"}).exit_code, 1)
        << "at temperature 0 the seed changes nothing";
    tokens_ = "13";
    refused({"--temp", "0"}, "predict 12, and this run has 13");
    tokens_ = "12";
    ask({"-o", "sampled.jsonl", "--temp", "1", "--seed", "18446744073709551615"});
    EXPECT_EQ(ask({"-o", "sampled.jsonl", "--temp", "1"}).exit_code, 1) << "the seed of the file";
    expect_refused(
        ask({"-o", "sampled.jsonl", "--temp", "1", "--draft", "chain", "--accept", "p/q"}),
        "accept");
    folder_.write("q.jsonl", "{\"prompt\": \"Others\"}\n");
    refused({"--temp", "0"}, "a prompt that q.jsonl does not have");
}

TEST_F(GenerateMany, DestroysNoFile) {
    const auto refused = [&](const std::string& file, const std::string& text) {
        folder_.write(file, text);
        expect_refused(ask({"-o", file}), file);
        EXPECT_EQ(read(file), text);
    };
    refused("notes.txt", "notes without an end of line");
    refused("lines.txt", "notes\nand more\n");
    refused("other.jsonl", "{\"schema\": \"aerie-other-1\", \"id\": \"x\"}\n");
    refused("half.jsonl", "{\"schema\":\"aerie-other-1\",\"id\"");
    expect_refused(ask({"-o", "q.jsonl"}), "is the file of the prompts");
    fs::create_symlink("q.jsonl", folder_.path() / "link.jsonl");
    expect_refused(ask({"-o", "link.jsonl"}), "is the file of the prompts");
    EXPECT_EQ(read("q.jsonl"), kPrompts);
    expect_refused(ask({"-o", ""}), "--output: the file needs a name");
    expect_refused(run({"generate", "--prompts", "", "-q"}, here_), "--prompts");
    const Outcome absent = ask({"-o", "no/such/folder"});
    EXPECT_EQ(absent.exit_code, 1);
    EXPECT_NE(absent.err.find("No such file or directory"), std::string::npos) << absent.err;
    EXPECT_EQ(ask({"-o", "/dev/null"}).exit_code, 1);
    EXPECT_EQ(lines(ask({"-o", "-"}).out).size(), 5u) << "stdout";
    folder_.write("zeros.jsonl", std::string(200, '\0'));
    ask({"-o", "zeros.jsonl"});
    EXPECT_EQ(lines(read("zeros.jsonl")).size(), 5u) << "as a power failure leaves a file";
}

TEST_F(GenerateMany, TwoRunsDoNotShareAFile) {
    std::string many;
    for (int i = 0; i < 400; ++i) many += "{\"prompt\": \"Count to " + std::to_string(i) + "\"}\n";
    folder_.write("q.jsonl", many);
    Program first({"generate", "--prompts", "q.jsonl", "-o", "a.jsonl", "-n", "200", "-q"}, here_);
    const fs::path file = folder_.path() / "a.jsonl";
    for (int i = 0; i < 4000 && (!fs::exists(file) || fs::file_size(file) == 0); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    expect_refused(ask({"-o", "a.jsonl"}), "another aerie writes its answers there");
    first.send(SIGTERM);
    EXPECT_EQ(first.wait().exit_code, 128 + SIGTERM);
    EXPECT_FALSE(lines(read("a.jsonl")).empty());
}

}  // namespace
}  // namespace aerie::test
