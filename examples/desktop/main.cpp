// A chat window on libaerie: aerie-desktop [MODEL]
#include <QApplication>

#include "window.h"

int main(int count, char** arguments) {
    QApplication application(count, arguments);
    Window window;
    window.show();
    if (application.arguments().size() > 1) window.load(application.arguments().at(1));
    return application.exec();
}
