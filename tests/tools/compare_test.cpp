// `aerie compare`: its verdict as exit code, its JSON object against tools/README.md, its page.
#include <csignal>

#include "io/damage.h"
#include "io/input_file.h"
#include "paths.h"
#include "tools/generated.h"
#include "tools/pty.h"
#include "tools/write_model.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kTwice = {"compare", "--device", "cpu", "--device", "cpu"};

Json compared(const std::vector<std::string>& flags, int exit_code = 0,
              const Surroundings& around = {}) {
    const Outcome outcome = run(with(with(kTwice, {"--json", "-q"}), flags), around);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err << outcome.out;
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1) << outcome.out;
    return outcome.exit_code == exit_code ? Json::parse(outcome.out, "stdout") : Json();
}

const Json& item(const Json& json, const char* key, size_t i) {
    return json.find(key)->array()->at(i);
}
size_t size(const Json& json, const char* key) {
    return json.find(key)->array()->size();
}

void expect_numbers(const Json& json, const std::vector<const char*>& keys) {
    for (const char* key : keys) EXPECT_TRUE(json.find(key) && json.find(key)->is_number()) << key;
}

// Checks the schema aerie-compare-1 for two equal devices.
void expect_schema(const Json& json, size_t ops, size_t prompts) {
    EXPECT_EQ(field(json, "schema"), "\"aerie-compare-1\"");
    EXPECT_EQ(field(json, "passed"), "true");
    for (const char* key : {"model", "weights", "kv"})
        EXPECT_TRUE(json.find(key) && json.find(key)->string()) << key;
    expect_numbers(*json.find("tolerance"), {"op", "state", "kl_mean", "kl_most", "margin"});
    ASSERT_EQ(size(json, "devices"), 2u);
    EXPECT_EQ(field(item(json, "devices", 0), "name"), "\"cpu\"");
    EXPECT_EQ(item(json, "devices", 0).find("ops"), nullptr) << "the reference has no errors";
    const Json& device = item(json, "devices", 1);
    EXPECT_EQ(field(device, "name"), "\"cpu #2\"");
    EXPECT_EQ(field(device, "identical"), "true");
    EXPECT_EQ(field(device, "identical_ops"), std::to_string(ops));
    for (const char* key : {"kl_mean", "kl_most", "worst_margin"})
        EXPECT_EQ(device.find(key)->number(), 0) << key;
    EXPECT_EQ(field(device, "positions"), field(device, "agreements"));
    ASSERT_EQ(size(device, "ops"), ops);
    EXPECT_EQ(field(item(device, "ops", 0), "op"), "\"embedding\"");
    EXPECT_EQ(field(item(device, "ops", 0), "layer"), "null");
    EXPECT_EQ(field(item(device, "ops", 4), "op"), "\"attention\"");
    EXPECT_EQ(field(item(device, "ops", 4), "layer"), "0");
    for (const Json& op : *device.find("ops")->array())
        for (const char* kind : {"carried", "alone"}) {
            expect_numbers(*op.find(kind), {"relative", "worst_row", "not_finite"});
            EXPECT_EQ(field(*op.find(kind), "equal"), field(op, "values"));
        }
    ASSERT_EQ(size(json, "prompts"), prompts);
    double positions = 0;
    for (const Json& prompt : *json.find("prompts")->array()) {
        const Json& text = item(prompt, "texts", 1);
        EXPECT_EQ(size(text, "kl"),
                  size(prompt, "prompt_ids") + std::max<size_t>(size(text, "ids"), 1) - 1);
        positions += double(size(text, "kl"));
        for (const char* key : {"fork", "failure", "prefill_fork", "drafted_fork"})
            EXPECT_EQ(field(text, key), "null") << key;
        EXPECT_EQ(field(text, "ids"), field(item(prompt, "texts", 0), "ids"));
    }
    EXPECT_EQ(device.find("positions")->number(), positions);
    for (const Json& check : *json.find("checks")->array()) {
        EXPECT_EQ(field(check, "passed"), "true");
        expect_numbers(check, {"value", "limit"});
        for (const char* key : {"device", "name", "finding"})
            EXPECT_TRUE(check.find(key) && check.find(key)->string()) << key;
    }
}

TEST(CompareCommand, TwoEqualDevicesPass) {
    const Json json = compared({});
    expect_schema(json, 57, 3);
    EXPECT_EQ(field(json, "weights"), "\"f16\"");
    EXPECT_EQ(field(json, "draft_weights"), "\"q8_0\"");
    EXPECT_EQ(field(json, "tree"), "\"60,6,10\"");
    EXPECT_EQ(size(json, "checks"), 13u);
    for (size_t i = 0; i < 2; ++i) {
        const Json& drafting = *item(json, "devices", i).find("drafting");
        EXPECT_GT(drafting.find("tau")->number(), 2);
        EXPECT_GT(size(drafting, "accepted_by_depth"), 3u);
    }
}

TEST(CompareCommand, TakesPromptsTypesAndTrees) {
    const TestFolder folder;
    const std::string file = folder.write("prompts.txt", "One\n---8<---\n---8<---\nTwo three");
    const Json json = compared({"-f", file, "-n", "5", "--weights", "q4_0", "--kv", "f32", "--tree",
                                "8,3,2", "--draft-weights", "f16"});
    expect_schema(json, 58, 2);
    EXPECT_EQ(field(json, "weights"), "\"q4_0\"");
    EXPECT_EQ(field(json, "kv"), "\"f32\"");
    EXPECT_EQ(field(json, "draft_weights"), "\"f16\"");
    EXPECT_EQ(field(json, "tree"), "\"8,3,2\"");
    EXPECT_EQ(field(*json.find("tolerance"), "for"), "\"quantised\"");
    EXPECT_EQ(size(item(item(json, "prompts", 1), "texts", 0), "ids"), 5u);

    const Json plain =
        compared({"-f", "-", "-n", "0", "--weights", "f32", "--kv", "f32", "--draft", "none"}, 0,
                 {.input = "Two three"});
    expect_schema(plain, 57, 1);
    EXPECT_EQ(field(plain, "tree"), "null");
    EXPECT_EQ(field(item(plain, "devices", 1), "drafting"), "null");
    EXPECT_EQ(field(*plain.find("tolerance"), "for"), "\"f32\"");
}

TEST(CompareCommand, PrintsATableAndWritesAPage) {
    const TestFolder folder;
    const std::string page = folder.path() / "page.html";
    const Outcome outcome =
        run({"compare", "--device", "cpu", "--device", "cpu:portable", "--device", "cpu", "-p",
             "a <b> & c", "-n", "12", "--draft", "none", "--html", page});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    for (const char* part : {"layer 5", "cpu:portable against cpu", "cpu #2 against cpu",
                             "all 57 ops have the same bits", "nothing was drafted", "PASS"})
        EXPECT_NE(outcome.out.find(part), std::string::npos) << part << " in " << outcome.out;
    const std::string html = read_text(page, 1 << 20);
    for (const char* part :
         {"<svg", "<table", "cpu:portable and cpu #2 compute bit for bit what cpu computes",
          "gated", "&lt;", "&gt;", "&amp;"})
        EXPECT_NE(html.find(part), std::string::npos) << part;
    for (const char* part : {"http", "<script", "src=", "url(", "=nan", "=inf", ">nan", ">inf"})
        EXPECT_EQ(html.find(part), std::string::npos) << part;
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1)
        << "nothing but the page";
}

// One row of v in one layer has the largest f16 values, so its outputs exceed the KV cache's f16.
TEST(CompareCommand, FailsAndNamesTheOp) {
    const TestFolder folder;
    const fs::path model = copy_without_weights("aerie-tiny", folder.path() / "model");
    std::vector<Stored> tensors = Stored::all_of(models_dir() / "aerie-tiny");
    for (Stored& tensor : tensors)
        if (tensor.name.find("layers.2.self_attn.v_proj") != std::string::npos)
            for (size_t column = 0; column < 256; ++column)
                tensor.data.replace(2 * column, 2, "\xFF\x7B");
    write_file(model / "model.safetensors", safetensors_of(tensors));
    const std::string page = folder.path() / "page.html";
    const Json json = compared({"-m", model, "-n", "4", "--html", page}, 1);
    EXPECT_EQ(field(json, "passed"), "false");
    std::string finding;
    for (const Json& check : *json.find("checks")->array())
        if (field(check, "name") == "\"finite\"") finding = field(check, "finding");
    EXPECT_EQ(finding, "\"NaN or infinity first in layer 2, attention on cpu #2 and cpu\"");
    EXPECT_NE(read_text(page, 1 << 20).find(">fail<"), std::string::npos);
    const Outcome table = run(with(kTwice, {"-m", model, "-n", "4", "-q"}));
    EXPECT_EQ(table.exit_code, 1);
    EXPECT_NE(table.out.find("\nFAIL: cpu, decodes: prompt 1: the model computed NaN"),
              std::string::npos)
        << table.out;
}

using Interrupt = NeedsPty;

TEST_F(Interrupt, LeavesTheOldPageOfACompare) {
    const TestFolder folder;
    const fs::path page = folder.write("page.html", "old");
    Pty terminal;
    Program program(with(kTwice, {"-n", "1500", "--html", page}),
                    {.before = [&] { terminal.serve(STDERR_FILENO); }});
    terminal.wait_for("decoding on ");
    program.send(SIGINT);
    const Outcome outcome = program.wait();
    EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(read_text(page, 100), "old");
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace aerie::test
