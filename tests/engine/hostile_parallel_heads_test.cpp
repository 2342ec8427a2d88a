// Hostile Medusa and Hydra heads: each gives an error of one line that names the file and what is
// wrong with it, and no code of a pickle is ever run. The tests are meant to run under
// AddressSanitizer, too.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "draft/heads/kinds.h"
#include "engine/parallel_heads.h"
#include "io/damage.h"
#include "io/write_files.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;

class HostileParallelHeads : public testing::Test {
  protected:
    using Spoil = std::function<void(HeadParts&)>;

    void refused(const HeadForm& form, const Spoil& spoil, const std::string& why) const {
        HeadParts parts = random_parts(form, kHidden, kVocab, 0, 0);
        spoil(parts);
        refused_file(form, torch_of(list_of(parts)), why);
    }
    void refused_file(const HeadForm& form, const std::string& file, const std::string& why) const {
        fs::remove_all(folder_.path() / "the-head");
        folder_.write("the-head/config.json", head_json(form));
        folder_.write("the-head/" + form.file(), file);
        const std::string said = said_of(form);
        EXPECT_NE(said.find("the-head"), std::string::npos) << said;
        EXPECT_NE(said.find(why), std::string::npos) << said;
        EXPECT_LT(said.size(), 500u) << said;
    }
    std::string said_of(const HeadForm& form) const {
        const std::string method = form.hydra ? "hydra" : "medusa";
        const LoadOptions options = options_of(folder_.path() / "the-head", DType::F16, method);
        return error_of([&] {
            Model model(ModelFiles::open(options), options, open_device("cpu", {1}));
            model.drafter(options.draft, model.limits());
        });
    }

    static constexpr int kHidden = 256, kVocab = 4096;  // as of the bundled model
    const TestFolder folder_;
};

TEST_F(HostileParallelHeads, AreRefusedInOneLine) {
    const HeadForm medusa{.own_lm_head = true, .heads = 2}, hydra{.hydra = true, .heads = 2};
    const auto set = [](const std::string& name, std::vector<int64_t> shape, double size = 0.1) {
        return Spoil([=](HeadParts& parts) { parts[name] = random_part(name, shape, size); });
    };
    const auto drop = [](const std::string& name) {
        return Spoil([=](HeadParts& parts) { ASSERT_EQ(parts.erase(name), 1u); });
    };
    refused(medusa, drop("0.0.linear.bias"), "0.0.linear.bias");
    refused(medusa, drop("1.1.weight"), "some of its heads have an LM head of their own");
    refused(medusa, set("1.0.linear.weight", {256, 255}), "[256, 255]");
    refused(medusa, set("0.0.linear.weight", {255, 256}), "hidden size 255");
    refused(medusa, set("0.0.linear.weight", {256}), "no matrix");
    refused(medusa, set("0.1.weight", {4095, 256}), "vocabulary size 4095");
    refused(medusa, set("1.1.weight", {4095, 256}), "[4095, 256]");
    refused(medusa, set("3.0.linear.weight", {256, 256}), "no part of a Medusa head");
    refused(medusa, set("0.0.linear.scale", {256}), "no part of a Medusa head");
    refused(medusa, set("lm_head.weight", {4096, 256}), "no part of a Medusa head");
    refused(hydra, drop("hydra_mlp.1.0.res_connection.weight"), "res_connection.weight");
    refused(hydra, drop("hydra_mlp.0.0.linear.bias"), "linear.bias");
    refused(hydra, set("hydra_mlp.1.0.linear.weight", {256, 512}), "[256, 512]");
    refused(hydra, set("hydra_lm_head.5.weight", {4096, 256}), "no part of a Hydra head");
    refused(hydra, set("prefix_embeding_layer.norm.weight", {256}), "prefix_embeding_layer");
    refused(
        medusa,
        [](HeadParts& parts) {
            const float nan = NAN;
            std::memcpy(&parts.at("1.0.linear.weight").data[400], &nan, sizeof(nan));
        },
        "1.0.linear.weight");
}

TEST_F(HostileParallelHeads, PicklesAreReadAndNeverRun) {
    const HeadForm form{.own_lm_head = true, .heads = 2};
    PickleWriter calls;
    calls.raw("}").string("0.0.linear.weight").global("os", "system").raw("(");
    calls.string("touch pwned").raw("tRs");
    for (const HeadForm& one : {form, HeadForm{.hydra = true}}) {
        refused_file(one, torch_file(calls.text(), {}), "'os.system'");
        refused_file(one, "", "not a zip");
        refused_file(one, torch_of({}), "hidden_size");
    }
    EXPECT_FALSE(fs::exists("pwned"));
    const std::string good = torch_of(list_of(random_parts(form, kHidden, kVocab, 0, 0)));
    for (const double part : {0.1, 0.5, 0.9, 0.999})
        refused_file(form, good.substr(0, size_t(double(good.size()) * part)), "");
}

// Any damage to a small file gives an error of one line, or heads of some shape.
TEST_F(HostileParallelHeads, SurviveDamage) {
    for (const HeadForm& form : {HeadForm{.heads = 2}, HeadForm{.hydra = true, .heads = 1}}) {
        const fs::path folder = folder_.path() / "the-head";
        fs::remove_all(folder);
        folder_.write("the-head/config.json", head_json(form));
        const std::string file = torch_of(list_of(random_parts(form, 2, 4, 0, 0)));
        expect_survives_damage(file, [&](const std::string& damaged) {
            fs::remove(folder / form.file());  // some file systems are slow to overwrite a file
            folder_.write("the-head/" + form.file(), damaged);
            head_config(open_head(folder));
        });
    }
}

}  // namespace
}  // namespace aerie::test
