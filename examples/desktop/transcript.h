// What was said, as a page: questions, answers with what was drafted shaded, notes.
#pragma once

#include <QTextEdit>

class Transcript : public QTextEdit {
  public:
    Transcript();

    void ask(const QString& question);
    void add(const QString& text, bool is_drafted);  // to the answer
    void note(const QString& line);
    void start_over();

    static QColor shade() { return QColor(232, 152, 44, 80); }  // of what was drafted

  private:
    QTextCursor new_paragraph(int space_above);

    bool in_answer_ = false;
    bool follows_ = true;  // the end; not where somebody has scrolled up to read
};
