// Is loaded into the program with LD_PRELOAD and uses it as a person would: it types, clicks and
// reads. It depends on the program only through the names of its widgets. The environment variable
// DRIVE lists the slots to run, in order.
#include <QtTest>
#include <QtWidgets>

#include "between.h"
#include "pulse.h"

namespace {

QString given(const char* name) {
    return qEnvironmentVariable(name);
}

// Waits, while the program's event loop runs, until is_so() or until `limit` milliseconds have
// passed. Returns is_so().
template <class Condition>
bool until(Condition is_so, int limit = 120'000) {
    QElapsedTimer clock;
    clock.start();
    QEventLoop loop;
    QTimer poll;
    QObject::connect(&poll, &QTimer::timeout, [&] {
        if (is_so() || clock.elapsed() > limit) loop.quit();
    });
    poll.start(1);
    if (!is_so()) loop.exec();
    return is_so();
}

QPalette dark() {
    QPalette palette(QColor(48, 49, 52), QColor(35, 36, 38));
    palette.setColor(QPalette::Base, QColor(27, 28, 30));
    palette.setColor(QPalette::Highlight, QColor(70, 120, 190));
    return palette;
}

}  // namespace

class Driver : public QObject {
    Q_OBJECT

  private:
    template <class Widget>
    Widget* find(const char* name) const {
        return window_->findChild<Widget*>(name);
    }
    QTextEdit* transcript() const { return find<QTextEdit>("transcript"); }
    QString text() const { return transcript()->toPlainText(); }
    QString last_line() const { return text().section('\n', -1); }
    bool is_idle() const { return find<QWidget>("send")->isVisible(); }
    int tokens() const { return find<QLabel>("figures")->text().section(' ', 0, 0).toInt(); }
    // Whether the last answer has no drafted token.
    bool says_none_drafted() const {
        return find<QLabel>("figures")->text().contains(";0 drafted");
    }
    bool is_drafting() const { return find<QCheckBox>("draft")->isChecked(); }

    void type(const char* name, const QString& typed) {
        find<QLineEdit>(name)->clear();
        QTest::keyClicks(find<QLineEdit>(name), typed);
    }
    void click(const char* name) { QTest::mouseClick(find<QWidget>(name), Qt::LeftButton); }
    void begin_load(const QString& model) {
        type("model", model);
        click("load");
    }
    void begin_answer(const QString& question) {
        find<QLineEdit>("input")->setText(question.chopped(1));
        QTest::keyClicks(find<QLineEdit>("input"), question.right(1));
        QTest::keyClick(find<QLineEdit>("input"), Qt::Key_Return);
    }
    void load(const QString& model) {
        Pulse pulse;
        begin_load(model);
        QVERIFY(!is_idle());
        QVERIFY(find<QWidget>("progress")->isVisible());
        bool had_stage = false;
        QVERIFY(until([&] {
            had_stage |= window_->findChild<QStatusBar*>()->currentMessage().contains(" MiB");
            return is_idle();
        }));
        QVERIFY(had_stage);
        QVERIFY2(window_->windowTitle().startsWith(QFileInfo(model).fileName()),
                 qPrintable(text()));
        check_pulse("loading", pulse);
    }
    void check_pulse(const char* what, const Pulse& pulse) {
        qInfo("%s: %d ticks, at most %lld ms without one; %lld in a bare thread", what,
              pulse.ticks(), pulse.longest(), pulse.bare_longest());
        QVERIFY2(pulse.longest() < 250 + pulse.bare_longest(), "the window was blocked");
    }
    void shoot(const QString& name, QWidget* shown = nullptr) {
        until([] { return false; }, 200);
        QVERIFY((shown ? shown : window_)->grab().save(given("SHOTS") + "/" + name + ".png"));
    }
    // Pieces of text with a coloured background, which marks drafted tokens.
    int shaded() const {
        int count = 0;
        for (QTextBlock block = transcript()->document()->begin(); block.isValid();
             block = block.next())
            for (auto at = block.begin(); !at.atEnd(); ++at)
                count += at.fragment().charFormat().background().style() != Qt::NoBrush;
        return count;
    }
    static QList<QString> stored_talk() {
        QFile file(given("TALK"));
        QList<QString> contents;
        if (!file.open(QIODevice::ReadOnly)) return contents;
        for (const QJsonValue& message : QJsonDocument::fromJson(file.readAll()).array())
            contents.append(message["content"].toString());
        return contents;
    }
    void talk() {
        const QList<QString> contents = stored_talk();
        QVERIFY(contents.size() >= 4);
        for (int i = 0; i < contents.size(); i += 2) {
            const int before = shaded();
            begin_answer(contents[i]);
            QVERIFY(!is_idle());
            QVERIFY(until([this] { return is_idle(); }));
            QVERIFY(shaded() == before || !says_none_drafted());
        }
        QCOMPARE(text(), "\n" + contents.join("\n"));
    }
    // Returns while the model is still being loaded, after the first progress message.
    void load_some() {
        begin_load(given("SLOW"));
        QVERIFY(until(
            [this] { return !window_->findChild<QStatusBar*>()->currentMessage().isEmpty(); }));
        QVERIFY(!is_idle());
    }
    // Returns while the answer is still being written, after `least` tokens. For a slow model: the
    // bundled one may have finished by then.
    void answer_some(int least) {
        begin_answer("Tell me about the sea.");
        QVERIFY(until([&] { return tokens() >= least || is_idle(); }));
        QVERIFY(!is_idle());
    }

    QWidget* window_ = nullptr;

  private slots:
    void initTestCase() {
        QVERIFY(until([this] {
            for (QWidget* widget : QApplication::topLevelWidgets())
                if (qobject_cast<QMainWindow*>(widget) && widget->isVisible()) window_ = widget;
            return window_ != nullptr;
        }));
    }

    // The model was named on the command line.
    void loaded_at_start() {
        QVERIFY(until([this] { return find<QWidget>("input")->isEnabled() && is_idle(); }));
        QCOMPARE(window_->windowTitle(), "aerie-tiny – Aerie");
        QVERIFY(is_drafting());
    }

    void devices() {
        QComboBox& box = *find<QComboBox>("device");
        QVERIFY(until([&] { return box.count() > 0; }));
        QVERIFY(box.findText("cpu") >= 0);
        int unusable = 0;
        for (int i = 0; i < box.count(); ++i) {
            const QModelIndex index = box.model()->index(i, 0);
            QVERIFY(!index.data(Qt::ToolTipRole).toString().isEmpty());
            unusable += !(index.flags() & Qt::ItemIsEnabled);
        }
        qInfo("%d devices, %d of them unusable", int(box.count()), unusable);
        QVERIFY(unusable < box.count());
        const QModelIndex last = box.model()->index(box.count() - 1, 0);
        QVERIFY(!(last.flags() & Qt::ItemIsEnabled));
        QCOMPARE(last.data(Qt::ToolTipRole).toString(), "its driver is of another age");
        QVERIFY(box.currentIndex() != last.row());
        // A picture of the open list, in which a user looks for the reason.
        box.showPopup();
        shoot("devices", box.view()->window());
        box.hidePopup();
    }

    void bad_model() {
        const QString before = text();
        begin_load(given("SHOTS") + "/no such model");
        QVERIFY(until([this] { return is_idle(); }));
        QVERIFY2(last_line().contains("no such model"), qPrintable(text()));
        QCOMPARE(text().count('\n'), before.count('\n') + (before.isEmpty() ? 0 : 1));
    }

    void load_tiny() { load("aerie-tiny"); }
    void load_slow() { load(given("SLOW")); }

    void talk_drafted() {
        QVERIFY(is_drafting());
        Pulse pulse;
        talk();
        check_pulse("answering", pulse);
        // Checked over all answers together: whether one answer has drafted tokens depends on the
        // times measured on this machine.
        QVERIFY(shaded() > 0);
        shoot("light");
        const QPalette light = qApp->palette();
        qApp->setPalette(dark());
        shoot("dark");
        qApp->setPalette(light);
    }

    // After a model that cannot be loaded, the previous one stays, with its conversation.
    void goes_on() {
        bad_model();
        begin_answer("And then?");
        QVERIFY(until([this] { return is_idle(); }));
        QVERIFY(tokens() > 0);
    }

    void talk_plain() {
        click("fresh");
        QCOMPARE(text(), "");
        click("draft");
        QVERIFY(!is_drafting());
        talk();
        QCOMPARE(shaded(), 0);
        QVERIFY(says_none_drafted());
        click("draft");
    }

    void outgrow_context() {
        click("fresh");
        const QString full =
            "The context of 2048 tokens is full: the model does not read the oldest";
        QString question = "Please count. ";
        for (int i = 0; i < 60; ++i) question += QString::number(i) + " and ";
        for (int turn = 0; turn < 40 && !text().contains(full); ++turn) {
            begin_answer(question);
            QVERIFY(until([this] { return is_idle(); }));
        }
        QVERIFY2(text().contains(full), qPrintable(text().right(300)));
        QVERIFY(tokens() > 0);
        QScrollBar& bar = *transcript()->verticalScrollBar();
        QCOMPARE(bar.value(), bar.maximum());
        shoot("full");
        begin_answer(question.repeated(20));
        QVERIFY(until([this] { return is_idle(); }));
        qInfo("too long: %s", qPrintable(last_line()));
        QVERIFY(last_line().contains("2048"));
        begin_answer("A short one.");
        QVERIFY(until([this] { return is_idle(); }));
        QVERIFY(tokens() > 0);
    }

    // The step that runs while the button is pressed may end.
    void stop() {
        {
            Pulse pulse;
            answer_some(20);
            check_pulse("answering slowly", pulse);
        }
        shoot("answering");
        QVERIFY(!is_idle());
        click("stop");
        QVERIFY(until([this] { return is_idle(); }));
        QVERIFY(was_cancelled());
        qInfo("stopped: %d more steps", steps_since_cancel());
        QVERIFY(steps_since_cancel() <= 1);
        QCOMPARE(last_line(), "Stopped.");
    }

    // An answer can also be stopped while its prompt is read, before the first token; then there is
    // no partial answer to continue.
    void stop_reading() {
        begin_answer(QString("A long prompt, which takes long to read. ").repeated(150));
        until([] { return false; }, 300);
        click("stop");
        QVERIFY(until([this] { return is_idle(); }));
        QVERIFY(steps_since_cancel() <= 1);
        QCOMPARE(tokens(), 0);
        QCOMPARE(last_line(), "Stopped.");
        answer_some(2);
        click("stop");
        QVERIFY(until([this] { return is_idle(); }));
    }

    void cancel_loading() {
        load_some();
        click("stop");
        QVERIFY(until([this] { return is_idle(); }));
        QCOMPARE(last_line(), "Cancelled.");
    }

    void close() { QVERIFY(window_->close()); }
    void close_answering() {
        answer_some(2);
        close();
    }
    void close_loading() {
        load_some();
        close();
    }
};

namespace {

// The program exits by itself when its window is closed, unless a check failed.
void drive() {
    QTimer::singleShot(0, qApp, [] {
        Driver driver;
        const int failed = QTest::qExec(
            &driver, QStringList{"driver", "-nocrashhandler"} + given("DRIVE").split(' '));
        if (failed) std::_Exit(1);  // the program itself may have exited with 0
    });
}
Q_COREAPP_STARTUP_FUNCTION(drive)

}  // namespace

#include "driver.moc"
