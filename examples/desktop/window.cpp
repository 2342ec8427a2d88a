#include "window.h"

static QLayout* row_of(std::initializer_list<QWidget*> widgets) {
    auto* row = new QHBoxLayout;
    row->setContentsMargins(16, 12, 16, 12);
    row->setSpacing(8);
    for (QWidget* widget : widgets) row->addWidget(widget);
    return row;
}

Window::Window() {
    resize(920, 680);
    auto* middle = new QWidget;
    auto* column = new QVBoxLayout(middle);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addLayout(row_of({model_, browse_, device_, load_, draft_, fresh_}));
    column->addWidget(transcript_, 1);
    column->addLayout(row_of({input_, send_, stop_}));
    setCentralWidget(middle);
    statusBar()->addPermanentWidget(progress_);
    statusBar()->addPermanentWidget(figures_);
    set_up_widgets();
    connect_all();
    show_model({});
    set_doing(Doing::nothing);
    worker_.moveToThread(&thread_);
    thread_.start();
    have_worker(&Worker::list_devices);
}

// Waits until the worker has finished the step or the stage that it is in.
Window::~Window() {
    worker_.stop();
    thread_.quit();
    thread_.wait();
}

void Window::set_up_widgets() {
    browse_->setText("Browse");
    browse_->setPopupMode(QToolButton::InstantPopup);
    auto* menu = new QMenu(browse_);
    menu->addAction("Folder …", this, [this] { browse(false); });
    menu->addAction("GGUF file …", this, [this] { browse(true); });
    browse_->setMenu(menu);
    model_->setPlaceholderText("Model: a folder, a .gguf file, or a name such as smollm2");
    device_->setMinimumWidth(110);
    draft_->setToolTip("The text is the same either way. With a draft it comes sooner.");
    fresh_->setShortcut(QKeySequence::New);
    stop_->setShortcut(Qt::Key_Escape);
    input_->setMinimumHeight(34);
    progress_->setRange(0, 0);  // a busy indicator: the stages of loading are shown as text
    progress_->setTextVisible(false);
    progress_->setFixedSize(120, 10);
    figures_->setToolTip("τ: tokens of a cycle of draft and verify, the target's own among them");
}

void Window::connect_all() {
    connect(model_, &QLineEdit::returnPressed, load_, &QPushButton::click);
    connect(load_, &QPushButton::clicked, this, [this] { load(model_->text()); });
    connect(input_, &QLineEdit::returnPressed, send_, &QPushButton::click);
    connect(send_, &QPushButton::clicked, this, &Window::send);
    connect(stop_, &QPushButton::clicked, this, [this] { worker_.stop(); });
    connect(fresh_, &QPushButton::clicked, this, [this] {
        show_model(loaded_);
        have_worker(&Worker::forget);
    });
    connect(&worker_, &Worker::devices_listed, this, &Window::show_devices);
    connect(&worker_, &Worker::loading, this,
            [this](auto& stage) { statusBar()->showMessage(stage); });
    connect(&worker_, &Worker::model_changed, this, &Window::show_model);
    connect(&worker_, &Worker::answered, this, &Window::show_answer);
    connect(&worker_, &Worker::noted, transcript_, &Transcript::note);
    connect(&worker_, &Worker::finished, this, [this] { set_doing(Doing::nothing); });
}

void Window::show_devices(const QList<Device>& devices) {
    auto* items = qobject_cast<QStandardItemModel*>(device_->model());
    for (const Device& device : devices) {
        auto* item = new QStandardItem(device.name);
        item->setEnabled(device.problem.isEmpty());
        item->setToolTip(device.problem.isEmpty() ? device.description : device.problem);
        items->appendRow(item);
        if (device.is_best) device_->setCurrentText(device.name);
    }
}

// Begins a new conversation, with or without a model.
void Window::show_model(const LoadedModel& model) {
    if (model.path != loaded_.path) draft_->setChecked(model.can_draft);
    loaded_ = model;
    const bool is_loaded = !model.path.isEmpty();
    transcript_->start_over();
    figures_->clear();
    setWindowTitle(is_loaded ? QFileInfo(model.path).fileName() + " – Aerie" : "Aerie");
    transcript_->setPlaceholderText(is_loaded ? "" : "Choose a model to talk to.");
    input_->setPlaceholderText(is_loaded ? "Say something" : "");
    if (is_loaded) device_->setCurrentText(model.device);
}

void Window::show_answer(const QList<Piece>& pieces, const Figures& figures) {
    for (const Piece& piece : pieces) transcript_->add(piece.text, piece.is_drafted);
    figures_->setText(
        QString::asprintf("%d tokens, <span style='background:%s'>&nbsp;%d drafted&nbsp;</span> · "
                          "τ %.2f · %.1f tokens/s",
                          figures.tokens, qPrintable(Transcript::shade().name(QColor::HexArgb)),
                          figures.drafted, figures.tau, figures.tokens_per_second));
}

void Window::set_doing(Doing doing) {
    doing_ = doing;
    const bool is_idle = doing == Doing::nothing, is_loaded = !loaded_.path.isEmpty();
    QWidget* const while_idle[] = {model_, browse_, device_, load_, fresh_};
    for (QWidget* widget : while_idle) widget->setEnabled(is_idle);
    draft_->setEnabled(loaded_.can_draft);
    input_->setEnabled(is_loaded);
    send_->setEnabled(is_loaded);
    send_->setVisible(is_idle);
    stop_->setVisible(!is_idle);
    stop_->setText(doing == Doing::loading ? "Cancel" : "Stop");
    progress_->setVisible(doing == Doing::loading);
    QString status = "No model is loaded.";
    if (is_loaded) status = loaded_.path + " on " + loaded_.device;
    if (loaded_.can_draft) status += ", drafts by " + loaded_.draft;
    statusBar()->showMessage(status);
    if (is_idle) (is_loaded ? input_ : model_)->setFocus();
}

void Window::load(const QString& model) {
    if (doing_ != Doing::nothing || model.isEmpty()) return;
    model_->setText(model);
    set_doing(Doing::loading);
    have_worker(&Worker::load, model, device_->currentText());
}

void Window::send() {
    const QString question = input_->text().trimmed();
    if (doing_ != Doing::nothing || question.isEmpty()) return;
    input_->clear();
    figures_->clear();
    transcript_->ask(question);
    set_doing(Doing::answering);
    have_worker(&Worker::answer, question, draft_->isChecked());
}

void Window::browse(bool for_file) {
    load(for_file ? QFileDialog::getOpenFileName(this, "GGUF file", {}, "Models (*.gguf)")
                  : QFileDialog::getExistingDirectory(this, "Folder of a model"));
}
