// A conversation: its sequence and its answers. Code that touches pages or the device holds the
// turn; a round takes it itself.
#include "talk/talk.h"

#include "core/error.h"
#include "text/common_text.h"

namespace aerie {

Talk::Talk(std::shared_ptr<SharedModel> model) : model_(std::move(model)) {
    const std::lock_guard lock(model_->mutex());
    sequence_.emplace(model_->make_sequence());
    sequence_->begin({});
    open_.sequence = &*sequence_;
    model_->add(open_);
}

// The caller holds the turn.
Talk::Talk(std::shared_ptr<SharedModel> model, Sequence sequence)
    : model_(std::move(model)), sequence_(std::move(sequence)) {
    open_.sequence = &*sequence_;
    model_->add(open_);
}

Talk::~Talk() {
    const std::lock_guard lock(model_->mutex());
    model_->take_out(open_);
    sequence_.reset();
}

int Talk::computed() const {
    const std::lock_guard lock(model_->mutex());
    return sequence_->committed();
}

std::vector<int> Talk::joined(std::span<const int> prompt) const {
    return joined_text(model_->tokenizer().bpe(), ids(), prompt);
}

std::vector<int> Talk::joined(const Conversation& conversation) const {
    const Tokenizer& tokenizer = model_->tokenizer();
    return joined(encode_chat(tokenizer, render_chat(tokenizer, conversation)));
}

void Talk::begin(const Request& request) {
    const std::lock_guard lock(model_->mutex());
    end_answer();
    cancelled_ = false;
    Request own = request;
    own.cancelled = [this, asked = request.cancelled] { return cancelled_ || (asked && asked()); };
    answer_.emplace(model_->batch(), *sequence_, model_->tokenizer(), own);
    prompt_length_ = int(request.prompt.size());
    model_->note_use(open_);
    open_.is_answering = true;
}

bool Talk::step() {
    if (!answer_) throw UsageError("no answer was begun");
    if (!open_.is_answering) return false;
    model_->note_use();
    try {
        model_->rounds().step(*answer_);
    } catch (...) {
        const std::lock_guard lock(model_->mutex());
        sequence_->forget();  // the state of its pages is unknown after an error
        end_answer();
        throw;
    }
    if (!answer_->has_ended()) return true;
    const std::lock_guard lock(model_->mutex());
    end_answer();
    return false;
}

GenerationResult Talk::leave() {
    if (!answer_) throw UsageError("no answer was begun");
    const std::lock_guard lock(model_->mutex());
    end_answer();
    return answer_->leave();
}

const Generation& Talk::answer() const {
    if (!answer_) throw UsageError("no answer was begun");
    return *answer_;
}

// Drops tokens that the last cycle chose beyond the end of the answer.
void Talk::end_answer() {
    if (!std::exchange(open_.is_answering, false)) return;
    model_->note_use(open_);
    const int length = prompt_length_ + int(answer_->result().ids.size());
    if (length < int(ids().size())) sequence_->truncate(length);
}

void Talk::check_length(int length) const {
    if (length < 0 || length > int(ids().size()))
        throw UsageError("the conversation has " + std::to_string(ids().size()) + " tokens, not " +
                         std::to_string(length));
}

void Talk::rewind(int length) {
    check_length(length);
    const std::lock_guard lock(model_->mutex());
    end_answer();
    sequence_->truncate(length);
}

std::unique_ptr<Talk> Talk::fork(int length) const {
    check_length(length);
    const std::lock_guard lock(model_->mutex());
    model_->free_pages(1, open_.sequence);  // The fork copies its last page.
    return std::unique_ptr<Talk>(new Talk(model_, sequence_->fork(length)));
}

const GenerationResult& answer(Talk& talk, const Request& request) {
    talk.begin(request);
    while (talk.step()) {
    }
    return talk.answer().result();
}

}  // namespace aerie
