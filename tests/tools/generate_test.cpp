// `aerie generate` with the bundled model: what it prints for people and for machines.
#include <gtest/gtest.h>

#include "core/utf8.h"
#include "io/damage.h"
#include "io/input_file.h"
#include "paths.h"
#include "tools/generated.h"

namespace aerie::test {
namespace {

const std::string kPrompt = "USER: What is 3 times 14? ASSISTANT:";
const std::vector<std::string> kShort = {"-p", kPrompt, "-n", "24"};

TEST(Generate, PrintsTheTextAndStatistics) {
    const Outcome outcome = run(with({"generate", "--tree", "60,6,10"}, kShort));
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.out, text_of(generated(kShort)) + "\n");
    for (const char* part : {"tokens/s", "finished: ", "cycles of 60.0 nodes, 0% of them plain",
                             "tau ", "accepted by depth ", "draft ", "verify ", "sample ", "host "})
        EXPECT_NE(outcome.err.find(part), std::string::npos) << part << " in " << outcome.err;
    EXPECT_EQ((outcome.out + outcome.err).find('\x1b'), std::string::npos) << "no terminal";
    EXPECT_EQ(outcome.err.find('\r'), std::string::npos);
}

TEST(Generate, UnderstandsTheFlagsOfLlamaCpp) {
    const std::string ids = field(generated(kShort), "ids");
    for (const std::vector<std::string>& flags :
         {std::vector<std::string>{"-ngl", "99"},
          {"-ngl", "0"},
          {"--mirostat", "0", "--typical", "1.0", "--top-nsigma=-1"},
          {"--top-nsigma", "-1.0", "--typical", "1"},
          {"-ngl", "0", "--device", "cpu"},
          {"--device=cpu", "-ngl", "0", "-mg", "0", "-sm", "none"},
          {"-fa=on", "-cb", "-co", "-nkvo"},
          {"-ngl", "all", "-fa", "on", "-t", "2"},
          {"-fa", "--jinja", "-v", "--no-mmap", "-b", "512", "-ub", "512"},
          {"--flash-attn=auto", "--n-gpu-layers=99"},
          {"-ctk", "f16", "-ctv", "f16"},
          {"-st", "-no-cnv", "--cache-type-k", "F16"},
          {"--draft", "EAGLE2", "--weights", "Q8_0"}})
        EXPECT_EQ(field(generated(with(kShort, flags)), "ids"), ids) << flags[0] << " " << flags[1];
    const auto chat = [](const std::string& flag) {
        return field(generated({flag, "-p", "Hello", "-n", "8"}), "prompt_ids");
    };
    EXPECT_EQ(chat("-cnv"), chat("--chat"));
    EXPECT_EQ(field(generated({"-p", "Hello", "-n", "0", "--chat", "-dev", "cpu"}), "ids"), "[]");
}

TEST(Generate, QuietPrintsTheTextAlone) {
    const Outcome outcome = run(with({"generate", "-q"}, kShort));
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(outcome.out, text_of(generated(kShort)) + "\n");
}

TEST(Generate, JsonHasTheDocumentedFields) {
    const Json json = generated(with(kShort, {"--logprobs", "-s", "5"}));
    EXPECT_EQ(field(json, "schema"), "\"aerie-generate-1\"");
    EXPECT_EQ(field(json, "finish_reason"), "\"length\"");
    EXPECT_EQ(field(json, "seed"), "5");
    EXPECT_EQ(json.find("prompt_ids")->array()->front().number(), 1) << "BOS";
    ASSERT_EQ(json.find("ids")->array()->size(), 24u);
    ASSERT_EQ(json.find("logprobs")->array()->size(), 24u);
    for (const Json& value : *json.find("logprobs")->array()) EXPECT_LE(value.number(), 0);
    const Json& stats = *json.find("stats");
    double accepted = 0;
    for (const Json& count : *stats.find("accepted_by_depth")->array()) accepted += count.number();
    const double cycles = stats.find("cycles")->number();
    EXPECT_GT(cycles, 0);
    EXPECT_NEAR(stats.find("tau")->number(), 23 / cycles, 1e-9) << "the first is the prefill's";
    EXPECT_LE(accepted, 23);
    EXPECT_GE(accepted, 23 - cycles) << "at most one bonus token a cycle";
    for (const char* key : {"prefill_seconds", "decode_seconds", "tokens_per_second",
                            "draft_seconds", "verify_seconds", "sample_seconds"})
        EXPECT_GT(stats.find(key)->number(), 0) << key;
    EXPECT_GE(stats.find("host_seconds")->number(), 0);
    EXPECT_GE(stats.find("mean_nodes")->number(), 1);
    EXPECT_GE(stats.find("plain_share")->number(), 0);
    EXPECT_LE(stats.find("plain_share")->number(), 1);
}

TEST(Generate, DraftingNeverChangesTheText) {
    for (const std::vector<std::string>& sampling :
         {std::vector<std::string>{},
          {"--temp", "0.8", "-s", "7"},
          {"--temp", "1", "--top-p", "0.9", "--repeat-penalty", "1.2", "-s", "3"}}) {
        const auto flags = with({"-p", kPrompt, "-n", "28"}, sampling);
        const Json plain = generated(with(flags, {"--draft", "none"}));
        for (const std::vector<std::string>& draft : {std::vector<std::string>{},
                                                      {"--draft", "chain", "--chain-length", "3"},
                                                      {"--draft", "eagle1"},
                                                      {"--tree", "auto"},
                                                      {"--tree", "60,6,10"},
                                                      {"--draft", "eagle2", "--tree", "17,3,5"},
                                                      {"--proposals", "plain"},
                                                      {"--no-value"},
                                                      {"--no-rerank"},
                                                      {"-t", "1"}}) {
            const Json drafted = generated(with(flags, draft));
            EXPECT_EQ(field(drafted, "ids"), field(plain, "ids"));
            EXPECT_EQ(text_of(drafted), text_of(plain));
        }
    }
}

TEST(Generate, ReadsATreeFileWithAByteOrderMark) {
    const TestFolder folder;
    const std::string paths = "[[0],[0,0],[1]]";
    const auto cycles = [&](const std::string& text) {
        const std::string file = folder.write("tree.json", text).string();
        const Json json = generated(with(kShort, {"--draft", "eagle1", "--tree-file", file}));
        return field(*json.find("stats"), "mean_nodes");
    };
    EXPECT_EQ(cycles("\xEF\xBB\xBF" + paths), "4.0");
    EXPECT_EQ(cycles(paths), "4.0");
}

// With a head of EAGLE-2's kind: the method among its own that takes such a tree.
TEST(Generate, DraftsATreeFileWithoutANamedMethod) {
    const TestFolder folder;
    const std::string file = folder.write("tree.json", "[[0],[0,0],[1]]").string();
    const auto cycles = [&](const std::vector<std::string>& flags) {
        return field(*generated(with(with(kShort, {"--head", "aerie-tiny-eagle"}),
                                     with(flags, {"--tree-file", file})))
                          .find("stats"),
                     "mean_nodes");
    };
    EXPECT_EQ(cycles({}), "4.0");
    EXPECT_EQ(cycles({"--draft", "eagle1"}), "4.0");
}

TEST(Generate, TellsWhatTheTreesWere) {
    const Json fixed = generated(with(kShort, {"--tree", "60,6,10"}));
    EXPECT_EQ(field(*fixed.find("stats"), "mean_nodes"), "60.0");
    EXPECT_EQ(field(*fixed.find("stats"), "plain_share"), "0.0");
    const Json plain = generated(with(kShort, {"--draft", "none"}));
    EXPECT_EQ(field(*plain.find("stats"), "mean_nodes"), "1.0");
    EXPECT_EQ(field(*plain.find("stats"), "plain_share"), "1.0");
}

TEST(Generate, SameSeedSameText) {
    const auto flags = with(kShort, {"--temp", "1"});
    EXPECT_EQ(field(generated(with(flags, {"-s", "1"})), "ids"),
              field(generated(with(flags, {"-s", "1"})), "ids"));
    EXPECT_NE(field(generated(with(flags, {"-s", "1"})), "ids"),
              field(generated(with(flags, {"-s", "2"})), "ids"));
    const Json any = generated(flags);
    EXPECT_EQ(field(generated(with(flags, {"-s", field(any, "seed")})), "ids"), field(any, "ids"))
        << "a random seed is shown";
}

TEST(Generate, ComparesWithPlainDecoding) {
    const Outcome outcome = run(with({"generate", "--compare-plain"}, kShort));
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_NE(outcome.err.find("ids equal (24 tokens), 23 target passes against "),
              std::string::npos)
        << outcome.err;
    EXPECT_NE(outcome.err.find(" of them drafted, "), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find(" times as fast (medians of "), std::string::npos) << outcome.err;
}

TEST(Generate, EndsBeforeAStopString) {
    const std::string whole = text_of(generated(kShort));
    const std::string stop = whole.substr(8, 5);
    const Json json = generated(with(kShort, {"--stop", "no such text", "--stop", stop}));
    EXPECT_EQ(text_of(json), whole.substr(0, whole.find(stop)));
    EXPECT_EQ(field(json, "finish_reason"), "\"stop\"");
}

TEST(Generate, PointsToChatWhereAModelEndsARawPromptAtOnce) {
    const std::vector<std::string> question = {"generate", "-m", "smollm2",
                                               "--temp",   "0",  "-n",
                                               "8",        "-p", "What is the capital of France?"};
    const Outcome raw = run(question);
    EXPECT_EQ(raw.exit_code, 0);
    EXPECT_EQ(raw.out, "\n");
    EXPECT_NE(raw.err.find("with --chat it answers"), std::string::npos) << raw.err;
    const Outcome chat = run(with(question, {"--chat"}));
    EXPECT_GT(chat.out.size(), 8u);
    EXPECT_EQ(chat.err.find("--chat"), std::string::npos) << chat.err;
    EXPECT_EQ(run(with(question, {"-q"})).err, "");
}

// The notes on stderr about flags, without the statistics.
std::string notes_of(const std::vector<std::string>& flags) {
    const std::string err = run(with({"generate", "-p", "The", "-n", "1"}, flags)).err;
    return err.substr(0, err.find("1 tokens"));
}

TEST(Generate, TellsOfFlagsThatChangeNothing) {
    EXPECT_EQ(notes_of({}), "");
    EXPECT_EQ(notes_of({"--tree", "8,2,2", "--head", "aerie-tiny-eagle"}), "");
    EXPECT_EQ(notes_of({"--draft", "none", "--tree", "8,2,2"}),
              "(--tree changes nothing with --draft none)\n");
    EXPECT_EQ(notes_of({"--chain-length", "3"}),
              "(--chain-length changes nothing with --draft grafted)\n");
    EXPECT_EQ(notes_of({"--draft", "lookup", "--head", "aerie-tiny-eagle"}),
              "(--head changes nothing with --draft lookup)\n");
    EXPECT_EQ(notes_of({"--draft", "none", "--tree", "8,2,2", "-q"}), "");
    EXPECT_EQ(notes_of({"--draft", "none", "--head-taps", "1,2,3"}),
              "(--head-taps changes nothing with --draft none)\n");
}

TEST(Generate, TellsOfTheFormerNameOfBest) {
    EXPECT_EQ(notes_of({"--draft", "best"}), "");
    EXPECT_EQ(notes_of({"--draft", "auto"}), "(--draft auto is called --draft best now)\n");
    const std::vector<std::string> quiet = with({"generate", "-q", "--draft", "auto"}, kShort);
    EXPECT_EQ(run(quiet).out, text_of(generated(with(kShort, {"--draft", "best"}))) + "\n");
    EXPECT_EQ(run(quiet).err, "");
    const Outcome shown = run(with({"generate", "--draft", "auto"}, kShort));
    EXPECT_NE(shown.err.find("\nbest: "), std::string::npos) << shown.err;
}

TEST(Generate, TellsOfFlagsThatImplyChat) {
    const std::vector<std::string> briefed = {
        "--system", "Be brief.", "--template",
        (test_data_dir() / "jinja" / "chatml.jinja").string()};
    EXPECT_EQ(notes_of(briefed), "(--system makes a conversation of the prompt, as --chat does)\n");
    EXPECT_EQ(notes_of(with(briefed, {"--chat"})), "");
}

TEST(Generate, ChatAppliesTheTemplate) {
    const Json chat = generated({"--chat", "-p", "What is 3 times 14?", "-n", "24"});
    const Json literal = generated(kShort);
    EXPECT_EQ(field(chat, "prompt_ids"), field(literal, "prompt_ids"));
    EXPECT_EQ(field(chat, "ids"), field(literal, "ids"));
}

TEST(Generate, PromptsAreTheSameFromEverywhere) {
    const TestFolder folder;
    const std::string prompt = "-o FILE\nWrite \"the\" result.\n\n\xC3\xA4 \xE2\x82\xAC\n";
    folder.write("prompt.txt", prompt);
    const std::string ids = field(generated({"-p", prompt, "-n", "4"}), "prompt_ids");
    const Surroundings here{.folder = folder.path(), .input = prompt};
    EXPECT_EQ(field(generated({"-f", "prompt.txt", "-n", "4"}, here), "prompt_ids"), ids);
    EXPECT_EQ(field(generated({"-f", "-", "-n", "4"}, here), "prompt_ids"), ids);
    EXPECT_EQ(field(generated({"-n", "4"}, here), "prompt_ids"), ids);
    EXPECT_EQ(field(generated({"-f", "/dev/stdin", "-n", "4"}, here), "prompt_ids"), ids);
}

TEST(Generate, PromptsAreTakenLiterally) {
    const auto ids = [](const char* prompt) {
        return field(generated({"-p", prompt, "-n", "1"}), "prompt_ids");
    };
    EXPECT_NE(ids("a\\nb"), ids("a\nb"));
    EXPECT_EQ(ids("</s>"), "[1,2]") << "special tokens in a prompt are read";
}

TEST(Generate, PromptsNeedNotBeUtf8) {
    const Json json = generated({"-p", "caf\xE9 \xFF\xFE \xF0\x9F", "-n", "8"});
    EXPECT_TRUE(is_utf8(json.dump()));
}

TEST(Generate, EndsAtTheContextsEnd) {
    const Json json = generated({"-p", "The", "-c", "40", "--draft", "eagle2"});
    EXPECT_EQ(json.find("prompt_ids")->array()->size() + json.find("ids")->array()->size(), 40u);
    EXPECT_EQ(field(json, "finish_reason"), "\"length\"");
    EXPECT_EQ(field(generated({"-p", "The", "-n", "0"}), "ids"), "[]");
}

TEST(Generate, NumbersAreDecimal) {
    const Json json = generated({"-p", "The", "-n", "010", "-s", "010", "-c", "020"});
    EXPECT_EQ(json.find("ids")->array()->size(), 10u);
    EXPECT_EQ(field(json, "seed"), "10");
    EXPECT_EQ(generated({"-p", "The", "-n", "08"}).find("ids")->array()->size(), 8u);
}

TEST(Generate, AnEmptyValueTakesNoOther) {
    const Json json = generated({"-p", "x", "--system=", "--logprobs", "-n", "3"});
    EXPECT_EQ(json.find("logprobs")->array()->size(), 3u);
}

TEST(Generate, ValuesThatLookLikeFlagsAreValues) {
    const auto ids = [](const std::string& prompt) {
        return field(generated({"-p", prompt, "-n", "1"}), "prompt_ids");
    };
    EXPECT_NE(ids("-md"), ids("--head"));
    EXPECT_NE(ids("--stop="), ids("--stop"));
    EXPECT_NE(ids("--"), ids("-"));
}

TEST(Generate, ARangesEndIsInIt) {
    for (const char* penalty : {"0.01", "100"})
        generated({"-p", "The", "-n", "1", "--repeat-penalty", penalty});
}

TEST(Generate, WritesEveryFloatTypeOfWeightsAndCache) {
    for (const char* weights : {"f32", "f16", "bf16"})
        for (const char* kv : {"f32", "f16"}) {
            const std::vector<std::string> types = {"--weights", weights, "--kv", kv};
            const Json plain = generated(with(with(kShort, types), {"--draft", "none"}));
            EXPECT_EQ(field(generated(with(kShort, types)), "ids"), field(plain, "ids"));
        }
}

}  // namespace
}  // namespace aerie::test
