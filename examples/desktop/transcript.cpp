#include "transcript.h"

#include <QScrollBar>

// Translucent colours and middle greys suit light and dark palettes alike.

Transcript::Transcript() {
    setReadOnly(true);
    setUndoRedoEnabled(false);
    setFrameShape(QFrame::NoFrame);
    document()->setDocumentMargin(16);
    QFont larger = font();
    larger.setPointSizeF(larger.pointSizeF() * 1.15);
    setFont(larger);
    QScrollBar* bar = verticalScrollBar();
    connect(bar, &QScrollBar::valueChanged, this,
            [=](int value) { follows_ = value >= bar->maximum() - 4; });
    connect(bar, &QScrollBar::rangeChanged, this, [=](int, int maximum) {
        if (follows_) bar->setValue(maximum);
    });
}

void Transcript::start_over() {
    clear();
    QTextBlockFormat flat;  // for the empty block before the first question
    flat.setLineHeight(1, QTextBlockFormat::FixedHeight);
    textCursor().setBlockFormat(flat);
}

// Begins a paragraph at the end of the page.
QTextCursor Transcript::new_paragraph(int space_above) {
    QTextBlockFormat format;
    format.setTopMargin(space_above);
    format.setLineHeight(125, QTextBlockFormat::ProportionalHeight);
    QTextCursor end(document());
    end.movePosition(QTextCursor::End);
    if (!end.atBlockStart()) end.insertBlock();
    end.setBlockFormat(format);
    return end;
}

void Transcript::ask(const QString& question) {
    QTextFrameFormat bubble;
    bubble.setBackground(QColor(128, 128, 128, 46));
    bubble.setPadding(8);
    bubble.setTopMargin(14);
    bubble.setBottomMargin(8);
    bubble.setLeftMargin(90);
    QTextCursor end(document());
    end.movePosition(QTextCursor::End);
    end.insertFrame(bubble);
    end.insertText(question, {});
    in_answer_ = false;
    verticalScrollBar()->setValue(verticalScrollBar()->maximum());
}

void Transcript::add(const QString& text, bool is_drafted) {
    if (!in_answer_) new_paragraph(4);
    in_answer_ = true;
    QTextCharFormat format;
    if (is_drafted) format.setBackground(shade());
    QTextCursor end(document());
    end.movePosition(QTextCursor::End);
    end.insertText(text, format);
}

void Transcript::note(const QString& line) {
    QTextCharFormat format;
    format.setForeground(QColor(128, 128, 128));
    format.setFontItalic(true);
    new_paragraph(6).insertText(line, format);
    in_answer_ = false;
}
