// The model, in a thread of its own. It talks to the window by signals, which Qt queues. The window
// has its other functions called in that thread, and calls stop() and allow() itself.
#pragma once

#include <QList>
#include <QObject>
#include <aerie.hpp>
#include <atomic>
#include <mutex>
#include <optional>

struct Device {
    QString name, description, problem;  // problem: why it cannot be used, or ""
    bool is_best;
};

struct LoadedModel {
    QString path, device, draft;  // "": no model is loaded
    bool can_draft = false;
};

struct Piece {  // a part of an answer
    QString text;
    bool is_drafted;
};

struct Figures {
    double tokens_per_second, tau;  // tau: tokens per cycle, including the target's own
    int tokens, drafted;
};

class Worker : public QObject {
    Q_OBJECT

  public:
    void list_devices();
    void load(const QString& model, const QString& device);
    void answer(const QString& question, bool with_drafts);
    void forget() { turns_.clear(); }

    // The work in progress ends soon, and so does all further work until allow().
    void stop();
    void allow() { stopped_ = false; }

  signals:
    void devices_listed(const QList<Device>& devices);
    void loading(const QString& stage);
    void model_changed(const LoadedModel& model);
    void answered(const QList<Piece>& pieces, const Figures& figures);  // the next part of it
    void noted(const QString& line);                                    // a message for the user
    void finished();  // load() or answer() has ended, with or without success

  private:
    struct Turn {
        std::string question, answer;
    };

    template <class Work>
    void attempt(Work work);  // notes an error
    void replace_model(const aerie_model_options& options);
    void set_session(std::optional<aerie::Session> session);
    std::vector<aerie_chat_message> messages() const;
    int prompt_tokens() const;
    void make_room();
    void run(bool with_drafts);

    aerie::Context context_;
    std::optional<aerie::Model> model_;
    std::optional<aerie::Session> session_;
    std::mutex replacing_session_;  // for stop(), which reads session_
    std::vector<Turn> turns_;
    std::atomic<bool> stopped_ = false;
};
