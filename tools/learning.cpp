#include "learning.h"

#include "commands.h"
#include "core/error.h"
#include "state_folder.h"
#include "terminal.h"
#include "train/learner.h"

namespace aerie {

namespace fs = std::filesystem;

namespace {

fs::path learned_folder() {
    const fs::path state = state_folder();
    if (state.empty()) throw UsageError("there is no home folder for what --learn keeps (HOME)");
    return state / "learned";
}

}  // namespace

std::shared_ptr<Learning> start_learning(std::shared_ptr<SharedModel> model,
                                         const LoadOptions& options,
                                         std::function<void(const std::string&)> on_note) {
    train::LearnerOptions learner;
    learner.folder = learned_folder();
    learner.threads = options.threads;
    learner.on_note = std::move(on_note);
    return std::make_shared<train::Learner>(std::move(model), std::move(learner));
}

int run_forget(const ForgetOptions&) {
    const fs::path folder = learned_folder();
    std::error_code error;
    if (fs::is_symlink(folder))
        throw Error(folder.string() + " is a link to " + fs::read_symlink(folder).string() +
                    ": please delete that folder yourself");
    const uintmax_t removed = fs::remove_all(folder, error);
    if (error) throw Error(folder.string() + ": " + error.message());
    print(removed > 0 ? folder.string() + ": deleted\n" : "nothing was learnt\n");
    return 0;
}

}  // namespace aerie
