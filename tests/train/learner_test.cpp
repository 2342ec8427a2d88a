// A head that learns while it is used: it drafts better on the user's topic, the texts stay the
// same, and whatever goes wrong does no harm.
#include "train/learner.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "io/damage.h"
#include "io/input_file.h"
#include "io/safetensors_writer.h"
#include "talk/talks.h"
#include "train/needs_blas.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;
using train::Learner;
using train::LearnerOptions;

constexpr int kAnswer = 24;  // tokens

// Questions of a user who thinks of one thing only.
std::string question(int turn) {
    static const char* const names[] = {"Maria", "Tom", "Lily", "Ben", "Anna"};
    static const char* const things[] = {"apples", "pears", "plums"};
    return "USER: " + std::string(names[turn % 5]) + " has " + std::to_string(10 + turn * 7 % 30) +
           " " + things[turn % 3] + ". She gives " + std::to_string(1 + turn % 8) +
           " to her brother. How many " + things[turn % 3] + " does she have now? ASSISTANT:";
}

class Learns : public testing::Test {
  protected:
    LearnerOptions options() {
        LearnerOptions options;
        options.folder = folder_.path() / "learned";
        options.threads = 2;
        options.idle_seconds = 0;
        options.has_low_priority = false;  // other tests run beside this one
        options.on_note = [this](const std::string& line) {
            const std::lock_guard guard(mutex_);
            notes_.push_back(line);
        };
        return options;
    }
    // The notes that say that learning has ended.
    std::vector<std::string> failures() {
        const std::lock_guard guard(mutex_);
        std::vector<std::string> found;
        for (const std::string& note : notes_)
            if (note.starts_with("learning has ended")) found.push_back(note);
        return found;
    }
    // Answers one question with the owner's head, and lets it be learnt.
    static GenerationResult ask(const std::shared_ptr<SharedModel>& model, Learning* learning,
                                int turn, const std::string& owner = "") {
        Talk talk(model);
        Request request = request_of(ids_of(*model, question(turn)), kAnswer);
        if (learning) request.answer.head = learning->head(owner);
        const GenerationResult result = answer(talk, request);
        if (learning) learning->learn(owner, request.prompt, result.ids);
        return result;
    }
    // The folder of the owner "" of the only model.
    fs::path own_folder() {
        for (const fs::directory_entry& model : fs::directory_iterator(options().folder))
            return model.path() / "own";
        return {};
    }

    TestFolder folder_;

  private:
    std::mutex mutex_;
    std::vector<std::string> notes_;
};

class LearnsWith : public Learns, public testing::WithParamInterface<const char*> {};

TEST_P(LearnsWith, TheTopicOfItsUser) {
    const auto model = shared_model_of(GetParam());
    Learner learner(model, options());
    double without = 0, with = 0;
    for (int turn = 0; turn < 200; ++turn) {
        const GenerationResult plain = ask(model, nullptr, turn);
        const GenerationResult learnt = ask(model, &learner, turn);
        ASSERT_EQ(learnt.ids, plain.ids) << turn;
        if (turn >= 150) {
            without += plain.stats.tau() / 50;
            with += learnt.stats.tau() / 50;
        }
        if (turn % 16 == 15) learner.wait();  // the user thinks
    }
    RecordProperty("tau_without", std::to_string(without));
    RecordProperty("tau_with", std::to_string(with));
    std::printf("tau of the last 50 turns: %.3f without learning, %.3f with it\n", without, with);
    EXPECT_GE(with, 1.1 * without);
    EXPECT_GT(learner.replaced(), 0);
    EXPECT_EQ(failures(), std::vector<std::string>());
}

INSTANTIATE_TEST_SUITE_P(Heads, LearnsWith, testing::Values("eagle2", "eagle3"),
                         [](const auto& info) { return std::string(info.param); });

// Answers of short sessions add up, and every answer is kept however soon a session ends.
TEST_F(Learns, InShortSessions) {
    const auto model = shared_model_of("eagle2");
    for (int session = 0; session < 6; ++session) {
        Learner learner(model, options());
        for (int turn = 0; turn < 11; ++turn) ask(model, &learner, 11 * session + turn);
        if (session % 2) learner.wait();
    }
    const std::string texts = read_text(own_folder() / "texts.jsonl", 1 << 24);
    EXPECT_EQ(std::count(texts.begin(), texts.end(), '\n'), 1 + 66);
    EXPECT_TRUE(fs::exists(own_folder() / "head" / "config.json"));
    EXPECT_EQ(failures(), std::vector<std::string>());
}

// The next program finds what was learnt, and nobody else does.
TEST_F(Learns, ForEachOwnerAndTheNextProgram) {
    const auto model = shared_model_of("eagle2");
    std::shared_ptr<const DraftWeights> head;
    {
        Learner learner(model, options());
        for (int turn = 0; turn < 64 && !head; ++turn) {
            ask(model, &learner, turn, "key a");
            if (turn % 16 == 15) learner.wait();
            head = learner.head("key a");
        }
        EXPECT_NE(head, nullptr);
        EXPECT_EQ(learner.head("key b"), nullptr);
        EXPECT_EQ(learner.head(""), nullptr);
    }
    Learner next(model, options());
    next.head("key a");
    next.wait();
    EXPECT_NE(next.head("key a"), nullptr);
    EXPECT_EQ(next.head("key b"), nullptr);
    EXPECT_EQ(failures(), std::vector<std::string>());
}

// Whenever it ends, the folder has a whole head or none.
TEST_F(Learns, AndEndsAtAnyTime) {
    const auto model = shared_model_of("eagle2");
    for (int end = 0; end < 8; ++end) {
        {
            LearnerOptions often = options();
            often.fresh = 8;
            often.passes = 2;
            Learner learner(model, often);
            for (int turn = 0; turn < 33; ++turn) ask(model, &learner, turn + end);
            std::this_thread::sleep_for(std::chrono::milliseconds(120 * end));
        }
        const fs::path head = own_folder() / "head";
        if (!fs::exists(head / "config.json")) continue;
        const std::lock_guard lock(model->mutex());
        EXPECT_NE(model->model().load_head(head), nullptr);
    }
    Learner learner(model, options());
    for (int turn = 0; turn < 64; ++turn) {
        ask(model, &learner, turn);
        if (turn % 16 == 15) learner.wait();
    }
    EXPECT_NE(learner.head(""), nullptr);
    EXPECT_EQ(failures(), std::vector<std::string>());
}

void expect_harmless(const std::shared_ptr<SharedModel>& model, Learner& learner,
                     const std::function<GenerationResult(Learning*, int)>& ask) {
    for (int turn = 0; turn < 20; ++turn)
        EXPECT_EQ(ask(&learner, turn).ids, ask(nullptr, turn).ids);
    learner.wait();
    (void)model;
}

TEST_F(Learns, OnlyInOneProgramAtATime) {
    const auto model = shared_model_of("eagle2");
    Learner first(model, options());
    ask(model, &first, 0);
    first.wait();
    Learner second(model, options());
    expect_harmless(model, second,
                    [&](Learning* learning, int turn) { return ask(model, learning, turn); });
    ASSERT_EQ(failures().size(), 1u);
    EXPECT_NE(failures()[0].find("another program"), std::string::npos) << failures()[0];
}

TEST_F(Learns, NothingWhereItMayNotWrite) {
    const auto model = shared_model_of("eagle2");
    LearnerOptions there = options();
    write_text(folder_.path() / "file", "no folder\n");
    there.folder = folder_.path() / "file" / "learned";
    Learner learner(model, there);
    expect_harmless(model, learner,
                    [&](Learning* learning, int turn) { return ask(model, learning, turn); });
    ASSERT_EQ(failures().size(), 1u);
    EXPECT_NE(failures()[0].find("learning has ended"), std::string::npos) << failures()[0];
}

TEST_F(Learns, NothingFromADamagedHead) {
    const auto model = shared_model_of("eagle2");
    {
        Learner learner(model, options());
        ask(model, &learner, 0);
        learner.wait();
    }
    fs::create_directories(own_folder() / "head");
    write_text(own_folder() / "head" / "config.json", "{\"hidden_size\": 64}\n");
    Learner learner(model, options());
    expect_harmless(model, learner,
                    [&](Learning* learning, int turn) { return ask(model, learning, turn); });
    ASSERT_EQ(failures().size(), 1u);
    EXPECT_NE(failures()[0].find("learning has ended"), std::string::npos) << failures()[0];
}

TEST_F(Learns, OnlyWithAHead) {
    EXPECT_THROW(Learner(shared_model_of("lookup"), options()), UsageError);
    EXPECT_THROW(Learner(shared_model_of("medusa"), options()), UsageError);
}

}  // namespace
}  // namespace aerie::test
