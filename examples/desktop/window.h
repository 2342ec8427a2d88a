// The window: which model on which device, the conversation, and a line to type in.
#pragma once

#include <QtWidgets>

#include "transcript.h"
#include "worker.h"

class Window : public QMainWindow {
  public:
    Window();
    ~Window() override;

    void load(const QString& model);

  private:
    enum class Doing { nothing, loading, answering };

    void set_up_widgets();
    void connect_all();
    void show_devices(const QList<Device>& devices);
    void show_model(const LoadedModel& model);
    void show_answer(const QList<Piece>& pieces, const Figures& figures);
    void set_doing(Doing doing);
    void send();
    void browse(bool for_file);

    // Calls `work` in the worker's thread, after what it is doing.
    template <class... Types, class... Values>
    void have_worker(void (Worker::*work)(Types...), Values... values) {
        worker_.allow();
        QMetaObject::invokeMethod(&worker_, [=] { (worker_.*work)(values...); });
    }
    template <class Widget>
    static Widget* named(const char* name, Widget* widget) {
        widget->setObjectName(name);
        return widget;
    }

    QLineEdit* model_ = named("model", new QLineEdit);
    QToolButton* browse_ = named("browse", new QToolButton);
    QComboBox* device_ = named("device", new QComboBox);
    QPushButton* load_ = named("load", new QPushButton("Load"));
    QCheckBox* draft_ = named("draft", new QCheckBox("Draft"));
    QPushButton* fresh_ = named("fresh", new QPushButton("New chat"));
    Transcript* transcript_ = named("transcript", new Transcript);
    QLineEdit* input_ = named("input", new QLineEdit);
    QPushButton* send_ = named("send", new QPushButton("Send"));
    QPushButton* stop_ = named("stop", new QPushButton("Stop"));
    QProgressBar* progress_ = named("progress", new QProgressBar);
    QLabel* figures_ = named("figures", new QLabel);
    LoadedModel loaded_;
    Doing doing_ = Doing::nothing;
    Worker worker_;
    QThread thread_;
};
