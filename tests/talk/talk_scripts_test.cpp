// Random scripts of answers, rewinds, forks, saves and loads, with and without drafting: each
// answer must equal that of a talk that reads the same ids anew.
#include <random>

#include "io/damage.h"
#include "talks.h"

namespace aerie::test {
namespace {

int scripts() {
    const char* count = std::getenv("AERIE_TEST_SCRIPTS");
    return count ? std::atoi(count) : 50;
}

class Script {
  public:
    Script(std::shared_ptr<SharedModel> model, unsigned seed)
        : model_(model), random_(seed), talk_(std::make_unique<Talk>(model)) {}

    void run() {
        for (int i = 0; i < 6; ++i) {
            const int what = below(8);
            if (what < 4)
                answer();
            else if (what == 4)
                talk_->rewind(below(length() + 1));
            else if (what == 5)
                talk_ = talk_->fork(below(length() + 1));
            else if (what == 6)
                save_and_load();
            else
                cancelled_answer();
        }
        answer();
    }

    int answers = 0, reused = 0;

  private:
    int below(int count) { return int(random_() % unsigned(count)); }
    int length() const { return int(talk_->ids().size()); }

    // A request: the ids of the talk or the beginning of them, and some more ids.
    Request next() {
        std::vector<int> prompt = copy_of(talk_->ids());
        if (prompt.size() > 300) prompt.resize(size_t(1 + below(100)));
        const int more = (prompt.empty() ? 1 : 0) + below(4) * below(30);
        for (int i = 0; i < more; ++i) prompt.push_back(below(model_->files().config.vocab));
        Request request = request_of(prompt, 1 + below(24), below(2) ? 0.8f : 0.0f);
        request.answer.sampling.seed = random_();
        request.answer.drafts = below(3) > 0;
        if (below(3) == 0) request.answer.sampling.penalties.frequency = 0.5f;
        return request;
    }

    void answer() {
        const Request request = next();
        const auto fresh = talk_->fork(0);  // has only the state that drafting has learned
        const GenerationResult got = aerie::answer(*talk_, request);
        const GenerationResult anew = aerie::answer(*fresh, request);
        // "best" chooses a method by statistics that all answers update, so its cycles may differ.
        if (model_->options().draft.method == "best")
            expect_same_text(got, anew);
        else
            expect_same(got, anew);
        EXPECT_EQ(fresh->answer().result().reused, 0);
        Request other = request;
        other.answer.drafts = !request.answer.drafts;
        EXPECT_EQ(aerie::answer(*fresh, other).ids, got.ids);
        std::vector<int> all = request.prompt;
        all.insert(all.end(), got.ids.begin(), got.ids.end());
        EXPECT_EQ(copy_of(talk_->ids()), all);
        reused += got.reused;
        ++answers;
    }

    void cancelled_answer() {
        talk_->begin(next());
        for (int steps = below(4); steps > 0 && talk_->step(); --steps) {
        }
        talk_->cancel();
        while (talk_->step()) {
        }
    }

    void save_and_load() {
        const auto file = folder_.path() / "talk";
        talk_->save(file);
        const std::vector<int> ids = copy_of(talk_->ids());
        const int computed = talk_->computed();
        std::string note;
        talk_ = Talk::load(model_, file, note);
        EXPECT_EQ(note, "");
        EXPECT_EQ(copy_of(talk_->ids()), ids);
        EXPECT_EQ(talk_->computed(), computed);
    }

    std::shared_ptr<SharedModel> model_;
    std::mt19937 random_;
    const TestFolder folder_;
    std::unique_ptr<Talk> talk_;
};

// All methods, and EAGLE-2 with trees that are chosen by their costs.
std::vector<std::string> methods() {
    std::vector<std::string> names = {"chosen"};
    for (const DraftMethod& method : draft_methods()) names.push_back(method.name);
    return names;
}

class Scripts : public testing::TestWithParam<std::string> {};

TEST_P(Scripts, AnswerAsIfReadAnew) {
    const auto model = shared_model_of(GetParam());
    const int each = int(methods().size()), count = (scripts() + each - 1) / each;
    int answers = 0, reused = 0;
    for (int i = 0; i < count && !HasFailure(); ++i) {
        SCOPED_TRACE("script " + std::to_string(i));
        Script script(model, unsigned(i));
        script.run();
        answers += script.answers;
        reused += script.reused;
    }
    std::printf("%s: %d scripts, %d answers, %d positions not run again\n", GetParam().c_str(),
                count, answers, reused);
    EXPECT_GT(reused, answers);
}

INSTANTIATE_TEST_SUITE_P(Drafters, Scripts, testing::ValuesIn(methods()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace aerie::test
