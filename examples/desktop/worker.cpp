#include "worker.h"

#include <QElapsedTimer>
#include <QStringDecoder>

static constexpr int kFrame = 25;  // milliseconds: a window needs no more updates

template <class Work>
void Worker::attempt(Work work) {
    try {
        work();
    } catch (const aerie::Failure& failure) {
        emit noted(failure.status() == AERIE_CANCELLED ? "Cancelled." : failure.what());
    }
}

void Worker::list_devices() {
    QList<Device> devices;
    attempt([&] {
        for (const aerie_device& device : context_.devices())
            devices.append({device.name, device.description, device.problem, device.is_best != 0});
    });
    emit devices_listed(devices);
}

void Worker::load(const QString& model, const QString& device) {
    const std::string model_name = model.toStdString(), device_name = device.toStdString();
    aerie_model_options options = aerie_model_options_init();
    options.model = model_name.c_str();
    if (!device_name.empty()) options.device = device_name.c_str();
    options.progress_user = this;
    options.progress = [](void* user, const char* stage) -> int {
        Worker& worker = *static_cast<Worker*>(user);
        emit worker.loading(stage);
        return worker.stopped_;
    };
    attempt([&] { replace_model(options); });
    emit finished();
}

// The forecast reads the files' headers, so a model that cannot be loaded is refused while the old
// one is still there. The old one is freed before the new one is loaded: two might not fit.
void Worker::replace_model(const aerie_model_options& options) {
    context_.forecast(options);
    forget();
    set_session({});
    model_.reset();
    emit model_changed({});
    model_.emplace(context_, options);
    set_session(aerie::Session(*model_));
    const aerie_model_info info = model_->info();
    emit model_changed({info.path, info.device, info.draft, info.can_draft != 0});
}

void Worker::set_session(std::optional<aerie::Session> session) {
    const std::lock_guard lock(replacing_session_);
    session_ = std::move(session);
}

void Worker::stop() {
    stopped_ = true;
    const std::lock_guard lock(replacing_session_);
    if (session_) session_->cancel();
}

void Worker::answer(const QString& question, bool with_drafts) {
    turns_.push_back({question.toStdString(), {}});
    attempt([&] {
        make_room();
        run(with_drafts);
        turns_.back().answer = session_->answer().text;
    });
    if (turns_.back().answer.empty()) turns_.pop_back();
    emit finished();
}

// The whole conversation each time: the part that the session already holds is not prefilled again.
std::vector<aerie_chat_message> Worker::messages() const {
    std::vector<aerie_chat_message> messages;
    for (const Turn& turn : turns_) {
        messages.push_back({"user", turn.question.c_str()});
        if (!turn.answer.empty()) messages.push_back({"assistant", turn.answer.c_str()});
    }
    return messages;
}

int Worker::prompt_tokens() const {
    const std::vector<aerie_chat_message> all = messages();
    int32_t* ids = nullptr;
    size_t count = 0;
    model_->check(
        aerie_model_render(model_->handle(), all.data(), all.size(), nullptr, &ids, &count));
    aerie_free(ids);
    return int(count);
}

// Drops the oldest turns if an answer would have no room. Half of the context is freed at once,
// because all that is left must be prefilled again.
void Worker::make_room() {
    const int context = model_->info().context;
    if (prompt_tokens() + context / 8 <= context) return;
    int dropped = 0;
    for (; turns_.size() > 1 && prompt_tokens() > context / 2; ++dropped)
        turns_.erase(turns_.begin());
    if (dropped == 0) return;
    const QString oldest = dropped == 1 ? "turn" : QString("%1 turns").arg(dropped);
    emit noted("The context of " + QString::number(context) +
               " tokens is full: the model does not read the oldest " + oldest + " any more.");
}

void Worker::run(bool with_drafts) {
    const std::vector<aerie_chat_message> all = messages();
    aerie_request request = aerie_request_init();
    request.messages = all.data();
    request.message_count = all.size();
    request.without_drafts = !with_drafts;
    session_->begin(request);
    if (stopped_) session_->cancel();  // stop() may have come before begin()

    QList<Piece> pieces;
    Figures figures = {};
    QStringDecoder decode(QStringDecoder::Utf8);  // keeps incomplete characters
    QElapsedTimer since_update;
    since_update.start();
    session_->run([&](const aerie_step& step) {
        for (size_t i = 0; i < step.token_count; ++i) {
            const aerie_token token = session_->token(step.first_token + i);
            const bool is_drafted = token.origin == AERIE_FROM_DRAFT;
            QString text = decode(QByteArrayView(token.bytes, qsizetype(token.byte_count)));
            // Some tokenizers begin the first word with a space, which is no part of the answer.
            if (figures.tokens == 0 && text.startsWith(' ') && session_->answer().text[0] != ' ')
                text.remove(0, 1);
            pieces.append({text, is_drafted});
            ++figures.tokens;
            figures.drafted += is_drafted;
        }
        if (step.more && since_update.elapsed() < kFrame) return true;
        const aerie_statistics statistics = session_->statistics();
        figures.tokens_per_second = statistics.tokens_per_second;
        figures.tau = statistics.tau;
        emit answered(std::exchange(pieces, {}), figures);
        since_update.start();
        return true;
    });
    const int finish = session_->answer().finish;
    if (finish == AERIE_FINISH_CANCELLED) emit noted("Stopped.");
    if (finish == AERIE_FINISH_LENGTH) emit noted("The context is full: the answer ends here.");
}
