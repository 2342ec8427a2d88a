// A chat window on libaerie: aerie-desktop [MODEL]. Without an argument it opens the bundled
// smollm2; with an empty name it opens no model.
// name is empty.
#include <QApplication>

#include "window.h"

int main(int count, char** arguments) {
    QApplication application(count, arguments);
    Window window;
    window.show();
    window.load(application.arguments().value(1, "smollm2"));
    return application.exec();
}
