// `aerie bench`: its JSON object against bench/README.md, its page, and flags that it refuses.
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <csignal>

#include "io/damage.h"
#include "io/input_file.h"
#include "paths.h"
#include "tools/pty.h"
#include "tools/write_model.h"

namespace aerie::test {
namespace {

const std::vector<std::string> kQuick = {"bench", "--seconds", "0",  "--rows", "1,5,60",
                                         "-p",    "20",        "-t", "2"};

Json measured(const std::vector<std::string>& flags) {
    const Outcome outcome = run(with(with(kQuick, {"--json", "-q"}), flags));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1) << outcome.out;
    return outcome.exit_code == 0 ? Json::parse(outcome.out, "stdout") : Json();
}

double number(const Json& json, const char* key) {
    const Json* value = json.find(key);
    EXPECT_TRUE(value && value->is_number()) << key;
    return value ? value->number() : 0;
}

void expect_spread(const Json& samples, int least_runs) {
    EXPECT_GT(number(samples, "min_seconds"), 0);
    EXPECT_LE(number(samples, "min_seconds"), number(samples, "median_seconds"));
    EXPECT_LE(number(samples, "median_seconds"), number(samples, "max_seconds"));
    EXPECT_GE(number(samples, "runs"), least_runs);
}

// Checks the schema aerie-bench-1, whatever was measured.
void expect_schema(const Json& json) {
    EXPECT_EQ(field(json, "schema"), "\"aerie-bench-1\"");
    EXPECT_EQ(field(json, "device"), "\"cpu\"");
    EXPECT_EQ(field(json, "threads"), "2");
    EXPECT_EQ(field(json, "prompt_tokens"), "20");
    for (const char* key : {"model", "device_description", "weights", "kv"})
        EXPECT_TRUE(json.find(key) && json.find(key)->string()) << key;
    for (const char* key :
         {"layers", "hidden", "intermediate", "heads", "kv_heads", "head_dim", "vocabulary"})
        EXPECT_GT(number(*json.find("shape"), key), 0) << key;
    for (const char* key : {"rounds", "read_gb_per_s", "copy_gb_per_s", "pass_bytes",
                            "streamed_gb_per_s", "read_share", "prefill_tokens_per_second",
                            "plain_tokens_per_second", "peak_memory_bytes"})
        EXPECT_GT(number(json, key), 0) << key;
    for (const char* key : {"read", "copy", "prefill", "plain"}) expect_spread(*json.find(key), 3);
    EXPECT_NEAR(
        number(json, "plain_tokens_per_second") * number(*json.find("plain"), "median_seconds"), 1,
        1e-9);
    EXPECT_NEAR(number(json, "streamed_gb_per_s") * 1e9 /
                    (number(json, "pass_bytes") * number(json, "plain_tokens_per_second")),
                1, 1e-9);
    const Json::Array& passes = *json.find("passes")->array();
    ASSERT_EQ(passes.size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(number(passes[i], "rows"), std::vector<double>({1, 5, 60})[i]);
        expect_spread(passes[i], 3);
    }
    EXPECT_LT(number(passes[0], "min_seconds"), number(passes[2], "min_seconds"));
}

void expect_cycle(const Json& json, const Json& cycle) {
    for (const char* key :
         {"seconds", "draft_seconds", "verify_seconds", "tokens_per_second", "speedup", "cycles"})
        EXPECT_GT(number(cycle, key), 0) << key;
    EXPECT_NEAR(number(cycle, "tokens_per_second") * number(cycle, "seconds"), number(cycle, "tau"),
                1e-9);
    EXPECT_GE(number(cycle, "plain_share"), 0);
    EXPECT_LE(number(cycle, "plain_share"), 1);
    // A round has its own speedup; the factor 2 allows for a tau of that round that differs from
    // the mean.
    const Json& plain = *json.find("plain");
    const double tau = number(cycle, "tau");
    EXPECT_GE(number(cycle, "speedup") * 2 * number(cycle, "max_seconds"),
              tau * number(plain, "min_seconds"));
    EXPECT_LE(number(cycle, "speedup") * number(cycle, "min_seconds"),
              2 * tau * number(plain, "max_seconds"));
    EXPECT_LE(number(cycle, "min_speedup"), number(cycle, "speedup"));
    EXPECT_LE(number(cycle, "speedup"), number(cycle, "max_speedup"));
    EXPECT_LE(number(cycle, "draft_seconds") + number(cycle, "verify_seconds") +
                  number(cycle, "rest_seconds"),
              3 * number(cycle, "seconds"));
}

const Json& paper_cycle(const Json& json) {
    for (const Json& cycle : *json.find("cycles")->array())
        if (field(cycle, "tree") == "\"60,6,10\"") return cycle;
    throw Error("no cycle of the tree 60,6,10");
}

TEST(Bench, MeasuresTheBundledModel) {
    const Json json = measured({"-m", "aerie-tiny"});
    expect_schema(json);
    EXPECT_EQ(field(json, "weights"), "\"f16\"");
    EXPECT_EQ(field(json, "draft_weights"), "\"q8_0\"");
    EXPECT_EQ(number(json, "pass_bytes"),
              2 * (6 * (256 * 512 + 256 * 256 + 3 * 256 * 704) + 256 * 4096) + 4 * 13 * 256);
    EXPECT_GT(number(json, "draft_level_seconds"), 0);
    for (const Json& cycle : *json.find("cycles")->array()) expect_cycle(json, cycle);
    EXPECT_EQ(json.find("cycle")->dump(), json.find("cycles")->array()->front().dump());
    const Json& paper = paper_cycle(json);
    EXPECT_EQ(number(paper, "tree_nodes"), 60);
    EXPECT_EQ(number(paper, "plain_share"), 0);
    EXPECT_EQ(field(*json.find("cycle"), "tree"), "\"auto\"") << "the default comes first";
    EXPECT_NEAR(number(paper, "tau"), 5.68, 0.06) << "as recorded";
    EXPECT_EQ(field(json, "acceptance"), "\"aerie-acceptance-2\"");
    EXPECT_EQ(field(paper, "tau_is_rescaled"), "false");
}

TEST(Bench, MeasuresAShapeWithoutFiles) {
    const Json json =
        measured({"--like", "aerie-tiny", "--layers", "2", "--vocab", "500", "--tree", "60,6,10",
                  "--weights", "q4_0", "--draft-weights", "f16", "--tau", "3"});
    expect_schema(json);
    EXPECT_EQ(field(json, "model"), "\"aerie-tiny (random)\"");
    EXPECT_EQ(field(json, "weights"), "\"q4_0\"");
    EXPECT_EQ(field(json, "draft_weights"), "\"f16\"");
    EXPECT_EQ(json.find("cycles")->array()->size(), 1u) << "only what was asked for";
    const Json& paper = paper_cycle(json);
    EXPECT_NEAR(number(paper, "tau"), 3, 0.05);
    EXPECT_EQ(field(paper, "tau_is_rescaled"), "true");
}

// Sequences that share passes replay the record each for itself.
TEST(Bench, MeasuresSeveralSequences) {
    const std::vector<std::string> flags = {"-m", "aerie-tiny", "--sequences", "1,3"};
    const Json json = measured(with(flags, {"--tree", "20,5,4"}));
    expect_schema(json);
    const Json::Array& sequences = *json.find("sequences")->array();
    ASSERT_EQ(sequences.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
        const Json& one = sequences[i];
        EXPECT_EQ(number(one, "sequences"), i == 0 ? 1 : 3);
        EXPECT_EQ(number(one, "tree_nodes"), 20);
        EXPECT_GT(number(one, "tau"), 2);
        EXPECT_LE(number(one, "tau"), 6);
        EXPECT_LE(number(one, "min_speedup"), number(one, "speedup"));
        EXPECT_LE(number(one, "speedup"), number(one, "max_speedup"));
        EXPECT_GT(number(one, "plain_tokens_per_second"), 0);
    }
    EXPECT_GT(number(json, "most_sequences"), 3);

    const Json plain = measured(with(flags, {"--draft", "none"}));
    const Json& one = plain.find("sequences")->array()->front();
    EXPECT_GT(number(one, "plain_tokens_per_second"), 0);
    EXPECT_EQ(one.find("tau"), nullptr);
    EXPECT_TRUE(measured({}).find("sequences")->array()->empty());
}

// A level of an EAGLE-3 head reads a quarter of the LM head, because its vocabulary is smaller.
TEST(Bench, MeasuresEagle3WithoutFiles) {
    const std::vector<std::string> flags = {"--like",    "aerie-tiny", "--layers", "4",
                                            "--vocab",   "128000",     "--tree",   "60,6,10",
                                            "--weights", "q8_0"};
    const Json json = measured(with(flags, {"--draft", "eagle3"}));
    expect_schema(json);
    EXPECT_EQ(field(json, "head"), "\"EAGLE-3\"");
    EXPECT_NEAR(number(paper_cycle(json), "tau"), 5.68, 0.06) << "as recorded";
    EXPECT_EQ(number(paper_cycle(json), "tree_nodes"), 60);
    const Json other = measured(with(flags, {"--draft", "eagle2"}));
    EXPECT_EQ(field(other, "head"), "\"EAGLE-2\"");
    EXPECT_LT(number(json, "draft_level_seconds"), number(other, "draft_level_seconds"));
}

// The record that is replayed was made with an EAGLE head, so no other kind may pass for one.
TEST(Bench, TakesNoHeadOfAnotherKind) {
    for (const auto& [head, kind] : {std::pair("aerie-tiny-medusa", "a Medusa head"),
                                     {"aerie-tiny-hydra", "a Hydra head"},
                                     {"aerie-tiny-draft", "a language model"}}) {
        const Outcome outcome = run(with(kQuick, {"-m", "aerie-tiny", "--head", head}));
        EXPECT_EQ(outcome.exit_code, 2);
        EXPECT_NE(outcome.err.find(kind), std::string::npos) << outcome.err;
    }
}

TEST(Bench, WithoutAHeadBesideTheModelMeasuresPlainDecoding) {
    const TestFolder folder;
    const std::string lonely = copy_without_weights("aerie-tiny", folder.path() / "lonely");
    std::filesystem::copy(models_dir() / "aerie-tiny" / "model.safetensors", lonely);
    EXPECT_EQ(field(measured({"-m", lonely}), "head"), "null");
    const Outcome plain = run(with(kQuick, {"-m", lonely}));
    EXPECT_NE(plain.err.find("plain decoding alone is measured"), std::string::npos) << plain.err;
}

TEST(Bench, WithoutAHeadHasNoCycle) {
    const Json json = measured({"--like", "aerie-tiny", "--draft", "none"});
    expect_schema(json);
    for (const char* key : {"draft_weights", "head", "draft_level_seconds", "acceptance", "cycle"})
        EXPECT_EQ(field(json, key), "null") << key;
    EXPECT_TRUE(json.find("cycles")->array()->empty());
}

TEST(Bench, LoadsOneTensorAtATime) {
    // 83 MB in q8_0, twice as much in f16; the largest tensor is a sixth of that.
    const Outcome outcome = run({"bench",    "--json",    "-q",        "--like", "tinyllama-1.1b",
                                 "--hidden", "512",       "--heads",   "8",      "--intermediate",
                                 "8192",     "--layers",  "5",         "--rows", "1",
                                 "-p",       "4",         "--seconds", "0",      "--draft",
                                 "none",     "--weights", "q8_0"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const Json json = Json::parse(outcome.out, "stdout");
    const double weights = number(json, "pass_bytes");
    EXPECT_GT(weights, 80e6);
#ifndef AERIE_PROGRAM_IS_SANITIZED
    EXPECT_LT(number(json, "peak_memory_bytes"), 2 * weights) << "f16 besides would be three times";
#endif
}

TEST(Bench, PrintsATableAndWritesAPage) {
    const TestFolder folder;
    const std::string page = folder.path() / "page.html";
    const Outcome outcome =
        run(with(kQuick, {"--like", "aerie-tiny", "--sequences", "1, 2", "--html", page}));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    for (const char* part : {"GB/s", "plain token", "60 rows", "draft level", "tau ", "x plain"})
        EXPECT_NE(outcome.err.find(part), std::string::npos) << part << " in " << outcome.err;
    const std::string html = read_text(page, 1 << 20);
    for (const char* part : {"<svg", "<table", "aerie-tiny (random)", "pass of 60 rows", "60,6,10",
                             "Several sequences in one pass", "<tr><td>2<td>"})
        EXPECT_NE(html.find(part), std::string::npos) << part;
    for (const char* part : {"http", "<script", "src=", "url(", "nan", "inf"})
        EXPECT_EQ(html.find(part), std::string::npos) << part;
}

TEST(Bench, RefusesAPageThatCannotBeWrittenAtOnce) {
    const Outcome outcome =
        run({"bench", "--like", "llama-3.3-70b", "--html", "/absent/page.html"});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_NE(outcome.err.find("/absent/page.html: cannot be written"), std::string::npos);
}

TEST(Bench, RefusesWhatMakesNoSense) {
    const auto refused = [](const std::vector<std::string>& flags, const char* says) {
        const Outcome outcome = run(with({"bench"}, flags));
        EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
        EXPECT_NE(outcome.err.find(says), std::string::npos) << outcome.err;
        EXPECT_EQ(outcome.out, "");
    };
    refused({"--like", "gpt-9"}, "'gpt-9'");
    refused({"--like", "aerie-tiny", "-m", "aerie-tiny"}, "excludes");
    refused({"--rows", "65"}, "'65'");
    refused({"--draft", "chain"}, "'chain'");
    refused({"--rows", "1,x"}, "'1,x'");
    refused({"--rows", "1,"}, "'1,'");
    refused({"--rows", ""}, "--rows");
    refused({"--like", "aerie-tiny", "-q", "--tau", "50"}, "acceptance length");
    refused({"--like", "aerie-tiny", "-p", "100000"}, "context");
}

using Interrupt = NeedsPty;

TEST_F(Interrupt, LeavesNoPageOfABench) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGKILL}) {
        const TestFolder folder;
        Pty terminal;
        Program program(
            {"bench", "--seconds", "3600", "--draft", "none", "--html", "page.html"},
            {.folder = folder.path(), .before = [&] { terminal.serve(STDERR_FILENO); }});
        terminal.wait_for("round ");
        program.send(signal);
        const Outcome outcome = program.wait();
        EXPECT_EQ(outcome.exit_code, signal == SIGKILL ? -1 : 128 + signal);
        EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
    }
}

// Another user of the folder guesses the name that the page has before it is finished.
TEST(BenchPage, IsNotWrittenThroughAPlantedLink) {
    const TestFolder folder;
    const std::filesystem::path victim = folder.write("victim", "precious");
    const Surroundings planted{.folder = folder.path(), .before = [] {
                                   const std::string name =
                                       "page.html." + std::to_string(::getpid());
                                   (void)!::symlink("victim", name.c_str());
                               }};
    EXPECT_EQ(run(with(kQuick, {"--html", "page.html", "--draft", "none"}), planted).exit_code, 0);
    EXPECT_EQ(read_text(victim, 1 << 20), "precious");
}

TEST(BenchPage, BeyondAFileSizeLimitIsOneError) {
    const TestFolder folder;
    const Outcome outcome = run(with(kQuick, {"--html", "page.html", "--draft", "none", "-q"}),
                                {.folder = folder.path(), .before = [] {
                                     const rlimit limit{100, 100};
                                     ::setrlimit(RLIMIT_FSIZE, &limit);
                                 }});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_EQ(outcome.err, "aerie: page.html: cannot be written: File too large\n");
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace aerie::test
