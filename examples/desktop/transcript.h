// The conversation as a page: questions, answers with drafted tokens shaded, notes.
#pragma once

#include <QTextEdit>

class Transcript : public QTextEdit {
  public:
    Transcript();

    void ask(const QString& question);
    void add(const QString& text, bool is_drafted);  // appends to the answer
    void note(const QString& line);
    void start_over();

    static QColor shade() { return QColor(232, 152, 44, 80); }  // for drafted tokens

  private:
    QTextCursor new_paragraph(int space_above);

    bool in_answer_ = false;
    bool follows_ = true;  // scrolls with the end; false while the user has scrolled up
};
